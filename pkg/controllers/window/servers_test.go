package window

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/window"
)

func missing(kind, name string) error {
	return apierrors.NewNotFound(schema.GroupResource{Resource: kind}, name)
}

func conflict(kind, name string) error {
	return apierrors.NewConflict(schema.GroupResource{Resource: kind}, name, fmt.Errorf("another version"))
}

// write is one write: somebody may die before or after it, another change come before it,
// or the API server refuse it.
func (w *world) write(at string, do func() error) error {
	w.strike("before " + at)
	w.mu.Lock()
	err := w.refuse(at)
	if name := w.meddle(at); name != "" {
		if g := w.groups[name]; g != nil {
			w.store(g.DeepCopy())
		}
		if o := w.targets[name]; o != nil {
			o.version, o.hpa, o.scaled = w.next(), w.next(), w.next()
		}
	}
	if err == nil {
		err = do()
	}
	if err == nil {
		w.writes = append(w.writes, at)
		w.follow()
	}
	w.mu.Unlock()
	if err == nil {
		w.strike("after " + at)
	}
	return err
}

// groupServer is the API server's TaskGroups.
type groupServer struct{ *world }

func (s groupServer) Get(_ context.Context, namespace, name string) (*v1alpha1.TaskGroup, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	if g := s.groups[name]; g != nil && namespace == g.Namespace {
		return g.DeepCopy(), nil
	}
	return &v1alpha1.TaskGroup{}, missing("taskgroups", name) // as the client does
}

// same returns the group that is stored, if it is of that version.
func (s groupServer) same(g *v1alpha1.TaskGroup) (*v1alpha1.TaskGroup, error) {
	now := s.groups[g.Name]
	switch {
	case now == nil:
		return nil, missing("taskgroups", g.Name)
	case now.UID != g.UID || now.ResourceVersion != g.ResourceVersion:
		return nil, conflict("taskgroups", g.Name)
	}
	return now.DeepCopy(), nil
}

func (s groupServer) UpdateStatus(_ context.Context, g *v1alpha1.TaskGroup) (out *v1alpha1.TaskGroup, err error) {
	err = s.write("status", func() error {
		now, err := s.same(g)
		if err == nil {
			now.Status = *g.Status.DeepCopy()
			out = s.store(now)
		}
		return err
	})
	return out, err
}

func (s groupServer) SetFinalizers(_ context.Context, g *v1alpha1.TaskGroup, finalizers []string) (out *v1alpha1.TaskGroup, err error) {
	err = s.write("finalizers", func() error {
		now, err := s.same(g)
		if err == nil {
			now.Finalizers = slices.Clone(finalizers)
			out = s.store(now)
		}
		return err
	})
	return out, err
}

// targetServer is the API server's Deployments, HorizontalPodAutoscalers and
// ScaledObjects.
type targetServer struct{ *world }

// read is a target with the versions of all that was read.
func (s targetServer) Get(_ context.Context, namespace string, ref v1alpha1.TaskGroupTarget) (*Target, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refuse("read"); err != nil {
		return nil, err
	}
	o := s.targets[ref.Name]
	if o == nil || ref.Kind != "Deployment" {
		return &Target{Namespace: namespace, Missing: fmt.Sprintf("there is no %s %s", ref.Kind, ref.Name)}, nil
	}
	state := o.state
	if state.HPA != nil {
		state.HPA = &window.Bounds{Min: state.HPA.Min, Max: state.HPA.Max}
	}
	return &Target{
		Namespace: namespace, UID: o.uid, State: state,
		hpa: version{ref.Name, strconv.Itoa(o.hpa), o.uid}, scaled: version{ref.Name, strconv.Itoa(o.scaled), o.uid},
		kind: schema.GroupVersionResource{Resource: ref.Name, Version: strconv.Itoa(o.version)},
	}, nil
}

func (s targetServer) set(at string, t *Target, read string, now func(*object) *int, do func(*object)) error {
	return s.write(at, func() error {
		o := s.targets[t.hpa.name]
		switch {
		case o == nil:
			return missing("deployments", t.hpa.name)
		case o.uid != t.UID || strconv.Itoa(*now(o)) != read:
			return conflict("deployments", t.hpa.name)
		}
		do(o)
		*now(o) = s.next()
		return nil
	})
}

func (s targetServer) SetReplicas(_ context.Context, t *Target, n int32) error {
	return s.set("replicas", t, t.kind.Version, func(o *object) *int { return &o.version }, func(o *object) { o.state.Replicas = n })
}

func (s targetServer) SetHPA(_ context.Context, t *Target, b window.Bounds) error {
	return s.set("hpa", t, t.hpa.resource, func(o *object) *int { return &o.hpa }, func(o *object) { o.state.HPA = &b })
}

func (s targetServer) SetKEDA(_ context.Context, t *Target, paused string) error {
	return s.set("keda", t, t.scaled.resource, func(o *object) *int { return &o.scaled }, func(o *object) { o.state.KEDA = &paused })
}
