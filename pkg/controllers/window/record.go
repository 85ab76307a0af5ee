package window

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/window"
)

// encodeRecord writes down what is remembered of an action on that target.
func encodeRecord(r *window.Record, target v1alpha1.TaskGroupTarget) *v1alpha1.TaskGroupRecord {
	out := &v1alpha1.TaskGroupRecord{
		Target: target, TargetUID: types.UID(r.Target), Action: v1alpha1.TaskGroupAction(r.Action),
		Before: encodeState(&r.Image), Set: encodeState(&r.Set), Phase: string(r.Phase), Tries: int32(r.Tries),
	}
	if !r.Written.IsZero() {
		out.Written = &metav1.Time{Time: r.Written}
	}
	return out
}

// decodeRecord reads it again; nil where there is none.
func decodeRecord(r *v1alpha1.TaskGroupRecord) *window.Record {
	if r == nil {
		return nil
	}
	out := &window.Record{
		Target: string(r.TargetUID), Action: window.Action(r.Action),
		Image: decodeState(&r.Before), Set: decodeState(&r.Set), Phase: window.Phase(r.Phase), Tries: int(r.Tries),
	}
	if r.Written != nil {
		out.Written = r.Written.UTC()
	}
	return out
}

func encodeState(s *window.State) v1alpha1.TaskGroupScaling {
	out := v1alpha1.TaskGroupScaling{Replicas: s.Replicas, PausedReplicas: clone(s.KEDA), Asleep: s.Asleep}
	if s.HPA != nil {
		out.MinReplicas, out.MaxReplicas = clone(&s.HPA.Min), clone(&s.HPA.Max)
	}
	return out
}

func decodeState(s *v1alpha1.TaskGroupScaling) window.State {
	out := window.State{Replicas: s.Replicas, KEDA: clone(s.PausedReplicas), Asleep: s.Asleep}
	if s.MinReplicas != nil && s.MaxReplicas != nil {
		out.HPA = &window.Bounds{Min: *s.MinReplicas, Max: *s.MaxReplicas}
	}
	return out
}

func clone[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}

// seconds is a time as the API server keeps it.
func seconds(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }
