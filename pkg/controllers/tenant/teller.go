package tenant

import (
	"fmt"
	"maps"
	"time"

	"heteroflow.io/heteroflow/pkg/kube"
)

// retell is after how long what still holds is told again.
const retell = 30 * time.Minute

// teller knows what has been told, so that only news is. The zero value is ready
// for use. It is not safe for concurrent use.
type teller struct {
	told map[string]telling // what is told apart -> what was said of it
	last string             // what was the last that was told
}

type telling struct {
	notice kube.Notice
	at     time.Time
}

// keyOf tells apart what is told.
func keyOf(n *kube.Notice) string {
	a := &n.About
	return fmt.Sprintf("%s %s %s/%s %s %s", n.Reason, a.Kind, a.Namespace, a.Name, a.UID, n.Key)
}

// news returns those of the notices that have not been told so, and the end of
// what has been told and is not among them; so many at most. The others are news
// still the next time, and come first then.
func (t *teller) news(all []kube.Notice, now time.Time, most int) (news []kube.Notice) {
	if t.told == nil {
		t.told = map[string]telling{}
	}
	fresh, present := map[string]kube.Notice{}, make(map[string]struct{}, len(all))
	for _, n := range all {
		key := keyOf(&n)
		present[key] = struct{}{}
		if was, known := t.told[key]; !known || was.notice != n || now.Sub(was.at) >= retell {
			fresh[key] = n
		}
	}
	ended := t.ended(present)
	maps.Copy(fresh, ended)
	for i, key := range inOrder(fresh, t.last) {
		if i == most {
			break
		}
		t.last = key
		news = append(news, fresh[key])
		if _, over := ended[key]; over {
			delete(t.told, key)
		} else {
			t.told[key] = telling{fresh[key], now}
		}
	}
	return news
}

// ended returns what is to be told of the end of what is not present any more, and
// forgets that of which nothing is.
func (t *teller) ended(present map[string]struct{}) map[string]kube.Notice {
	ended := map[string]kube.Notice{}
	for key, was := range t.told {
		if _, still := present[key]; still {
			continue
		}
		if was.notice.Reason != ReasonViolated {
			delete(t.told, key)
			continue
		}
		n := was.notice
		n.Warning, n.Reason = false, ReasonRestored
		n.Text = fmt.Sprintf("card %s is not shared across a tenant boundary any more", n.Key)
		ended[key] = n
	}
	return ended
}
