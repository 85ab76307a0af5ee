package cluster

import (
	"context"
	"fmt"
	"os"

	"k8s.io/client-go/rest"
)

// Use starts a control plane in a folder of its own, called by that name, for as long as
// do takes. Its error has the last lines of all logs.
func Use(ctx context.Context, name string, do func(c *Cluster, dir string) error) error {
	dir, err := os.MkdirTemp("", "heteroflow-"+name+"-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	c, err := Start(ctx, dir)
	if err != nil {
		return err
	}
	defer c.Stop()
	if err := do(c, dir); err != nil {
		return fmt.Errorf("%w\n%s", err, c.Logs(30))
	}
	return nil
}

// Quick lets a client work at full speed, in the API server's own encoding.
func Quick(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = 5000, 10000
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	return config
}
