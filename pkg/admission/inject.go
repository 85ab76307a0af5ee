package admission

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	kjson "sigs.k8s.io/json"

	"heteroflow.io/heteroflow/pkg/codec"
	"heteroflow.io/heteroflow/pkg/gpu"
)

// environment is the part of a container's raw object that is changed.
type environment struct {
	Env []json.RawMessage `json:"env"`
}

// inject has each container see its own cards and no others, by these variables of
// those that ask for some.
func (p *patch) inject(raw []byte, byContainer map[string][]corev1.EnvVar) error {
	var given struct {
		Spec struct {
			InitContainers []environment `json:"initContainers"`
			Containers     []environment `json:"containers"`
		} `json:"spec"`
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &given); err != nil {
		return fmt.Errorf("request.object: %w", err)
	}
	for _, list := range []struct {
		field      string
		containers []corev1.Container
		given      []environment
	}{
		{"initContainers", p.pod.Spec.InitContainers, given.Spec.InitContainers},
		{"containers", p.pod.Spec.Containers, given.Spec.Containers},
	} {
		for i := range list.containers {
			c := &list.containers[i]
			ours, asks := byContainer[c.Name]
			if !asks {
				ours = codec.Hidden("")
			}
			if env, changed := replaced(c.Env, list.given[i].Env, ours); changed {
				p.add(env, "spec", list.field, strconv.Itoa(i), "env")
			}
		}
	}
	return nil
}

// variables returns those of each container that asks for cards, which also hide
// the cards of other vendors. It has them for all or, where one lacks something,
// for none.
func variables(request *gpu.Request) (map[string][]corev1.EnvVar, error) {
	all := make(map[string][]corev1.EnvVar, len(request.Asks))
	var errs []error
	for _, ask := range request.Asks {
		vendor := cmp.Or(ask.Vendor, request.Vendor)
		vars, err := codec.Variables(ask, vendor)
		errs = append(errs, err)
		all[ask.Container] = append(vars, codec.Hidden(vendor)...)
	}
	return all, errors.Join(errs...)
}

// replaced returns a container's variables with ours before those that its
// author wrote, so that the author's may refer to ours. What the author wrote
// about which cards are seen goes.
func replaced(env []corev1.EnvVar, raw []json.RawMessage, ours []corev1.EnvVar) (all []any, changed bool) {
	about := func(e corev1.EnvVar) bool {
		return codec.ShowsCards(e.Name) || slices.ContainsFunc(ours, func(o corev1.EnvVar) bool { return o.Name == e.Name })
	}
	for i := range ours {
		all = append(all, &ours[i])
	}
	var before []corev1.EnvVar
	for i := range env {
		if about(env[i]) {
			before = append(before, env[i])
			continue
		}
		all = append(all, raw[i])
	}
	if slices.EqualFunc(before, ours, func(a, b corev1.EnvVar) bool { return reflect.DeepEqual(a, b) }) {
		return nil, false
	}
	if all == nil {
		all = []any{}
	}
	return all, true
}
