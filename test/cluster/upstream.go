package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Upstream is the API server as the extender reaches it: a proxy that stands
// between the two forwards to it, and its own URL is Extender.APIServer then.
func (c *Cluster) Upstream() (url string, transport http.RoundTripper, err error) {
	config, err := clientcmd.BuildConfigFromFlags("", c.state("extender.kubeconfig"))
	if err != nil {
		return "", nil, err
	}
	transport, err = rest.TransportFor(config)
	return config.Host, transport, err
}

// proxied is a kubeconfig for a server that asks for no credentials.
func proxied(server string) []byte {
	return fmt.Appendf(nil, "apiVersion: v1\nkind: Config\ncurrent-context: c\n"+
		"contexts: [{name: c, context: {cluster: c, user: u}}]\nusers: [{name: u, user: {}}]\n"+
		"clusters: [{name: c, cluster: {server: %q}}]\n", server)
}

// Holders lists who holds what by the extender's own ledger: "card of pod".
func (c *Cluster) Holders(ctx context.Context) ([]string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.ExtenderURL()+"/debug/books", nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	var books struct {
		Nodes []struct {
			Cards []struct {
				UUID    string
				Holders []struct{ PodUID string }
			}
		}
	}
	if err := json.NewDecoder(answer.Body).Decode(&books); err != nil {
		return nil, fmt.Errorf("%s: %w", request.URL, err)
	}
	var held []string
	for _, n := range books.Nodes {
		for _, card := range n.Cards {
			for _, h := range card.Holders {
				held = append(held, card.UUID+" of "+h.PodUID)
			}
		}
	}
	return held, nil
}
