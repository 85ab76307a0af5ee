package scale

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"time"
)

// books reads what the scheduler holds, and finds each pod on its card and
// nobody else.
func (s *stage) books(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.cluster.ExtenderURL()+"/debug/books", nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	var dump struct {
		Nodes []struct {
			Cards []struct {
				UUID    string
				Closed  bool
				Fenced  bool
				Holders []struct{ PodUID string }
			}
		}
		Differences []string
	}
	if err := json.NewDecoder(answer.Body).Decode(&dump); err != nil {
		return fmt.Errorf("/debug/books: %w", err)
	}
	if len(dump.Differences) > 0 {
		return fmt.Errorf("the audit finds %d differences, the first: %s", len(dump.Differences), dump.Differences[0])
	}
	want := s.holders()
	for _, n := range dump.Nodes {
		for _, c := range n.Cards {
			if c.Closed || c.Fenced {
				return fmt.Errorf("card %s is closed", c.UUID)
			}
			for _, h := range c.Holders {
				if want[h.PodUID] != c.UUID {
					return fmt.Errorf("pod %s is on card %s, want %q", h.PodUID, c.UUID, want[h.PodUID])
				}
				delete(want, h.PodUID)
			}
		}
	}
	if len(want) > 0 {
		return fmt.Errorf("%d pods are on no card", len(want))
	}
	return nil
}

// holders says who is where: pod UID -> card.
func (s *stage) holders() map[string]string {
	all := make(map[string]string, len(s.uids))
	for i, uid := range s.uids {
		all[string(uid)] = string(s.placement(i).Grants[0].Shares[0].Card)
	}
	return all
}

// logged reads a duration from the scheduler's log: the value of that key in the
// line that begins so.
func (s *stage) logged(message, key string) (time.Duration, error) {
	text, err := os.ReadFile(filepath.Join(s.dir, "extender.log"))
	if err != nil {
		return 0, err
	}
	line := regexp.MustCompile(regexp.QuoteMeta(message) + `.*\b` + key + `="([^"]+)"`).FindSubmatch(text)
	if line == nil {
		return 0, fmt.Errorf("the scheduler's log has no %s of %q", key, message)
	}
	return time.ParseDuration(string(line[1]))
}
