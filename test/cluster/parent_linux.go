package cluster

import (
	"os/exec"
	"syscall"
)

// dieWithParent has the kernel kill the child when its parent ends, however
// that happens.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
