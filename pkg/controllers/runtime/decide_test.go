package runtime

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Who is to be ended comes before who is to be told, who was not tried before who was,
// and whose time has been over for longer before the others.
func TestOrder(t *testing.T) {
	now := start()
	of := func(name string, limit, left time.Duration, hard bool) run {
		return run{pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)}}, limit: limit, hard: hard, end: now.Add(left)}
	}
	runs := []run{
		of("soft", time.Hour, -time.Minute, false),
		of("soft, told", time.Hour, -time.Minute, false),
		of("soft, told of another end", time.Hour, -time.Hour, false),
		of("soft, soon", time.Hour, time.Minute, false),
		of("soon", time.Hour, 6*time.Minute, true),
		of("not yet", time.Hour, 6*time.Minute+1, true),
		of("soon, told", time.Hour, time.Minute, true),
		of("sooner", time.Hour, time.Minute, true),
		of("over, tried a moment ago", time.Hour, -time.Hour, true),
		of("over, tried long ago", time.Hour, -5*time.Hour, true),
		of("over, tried longer ago", time.Hour, -time.Hour, true),
		of("over b", time.Hour, 0, true),
		of("over a", time.Hour, 0, true),
		of("over for longer", time.Hour, -time.Hour, true),
	}
	records := map[types.UID]*record{
		"soft, told":                {reported: now.Add(-time.Minute)},
		"soft, told of another end": {reported: now},
		"soon, told":                {warned: now.Add(time.Minute)},
		"over, tried a moment ago":  {tried: now.Add(-again + 1)},
		"over, tried long ago":      {tried: now.Add(-again)},
		"over, tried longer ago":    {tried: now.Add(-2 * again)},
		"over a":                    {warned: now},
	}
	want := []string{
		"0 over for longer", "0 over a", "0 over b", "0 over, tried longer ago", "0 over, tried long ago",
		"1 sooner", "1 soon", "2 soft, told of another end", "2 soft",
	}
	var got []string
	for _, d := range decide(runs, records, now) {
		got = append(got, fmt.Sprintf("%d %s", d.act, d.pod.Name))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
