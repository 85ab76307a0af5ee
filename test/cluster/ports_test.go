package cluster

import (
	"net"
	"strconv"
	"testing"
)

func TestChooseAddresses(t *testing.T) {
	chosen := make([]string, 100)
	addresses := make([]*string, len(chosen))
	for i := range chosen {
		addresses[i] = &chosen[i]
	}
	if err := chooseAddresses(addresses...); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, address := range chosen {
		host, text, err := net.SplitHostPort(address)
		if err != nil {
			t.Fatal(err)
		}
		port, err := strconv.Atoi(text)
		if err != nil || host != "127.0.0.1" || port < firstPort || port >= firstPort+ports {
			t.Errorf("%s, want a port of the loopback address from %d to %d", address, firstPort, firstPort+ports-1)
		}
		if seen[address] {
			t.Errorf("%s is chosen twice", address)
		}
		seen[address] = true
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Errorf("somebody listens: %v", err)
			continue
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}
