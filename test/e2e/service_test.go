package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	typed "heteroflow.io/heteroflow/pkg/generated/clientset/versioned/typed/heteroflow/v1alpha1"
)

// Keys of services.
const (
	taskGroupKey  = ours + "task-group"
	maxRuntimeKey = ours + "max-runtime"
)

// service is a Deployment of so many pods with a card of the node each, members of the
// TaskGroup of its name, which does not exist yet.
func (s *scene) service(name, node string, replicas int32) {
	s.Helper()
	pod := with(with(on(node, podFor(name, amount{wholeCards, 1})), taskGroupKey, name), taskTypeKey, "inference")
	s.deployment(pod, replicas)
}

// deployment has a Deployment make such pods.
func (s *scene) deployment(pod *corev1.Pod, replicas int32) {
	s.Helper()
	labels := map[string]string{"app": pod.Name}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: pod.Annotations}, Spec: pod.Spec}
	template.Spec.RestartPolicy = corev1.RestartPolicyAlways // a set takes no other
	_, err := s.Client.AppsV1().Deployments(s.ns).Create(s.ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: pod.Name},
		Spec:       appsv1.DeploymentSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template},
	}, metav1.CreateOptions{})
	s.must("create deployment", err)
}

// always is a window that never closes.
func always() v1alpha1.TaskGroupWindow {
	return v1alpha1.TaskGroupWindow{From: "00:00", To: "24:00"}
}

// between is a window that is open from then until then, every day, in UTC.
func between(from, to time.Duration) v1alpha1.TaskGroupWindow {
	clock := func(d time.Duration) string { return time.Now().UTC().Add(d).Format("15:04") }
	return v1alpha1.TaskGroupWindow{From: clock(from), To: clock(to)}
}

// shut is a window that is closed for the next hours.
func shut() v1alpha1.TaskGroupWindow { return between(6*time.Hour, 12*time.Hour) }

// pausing is the spec of a group that sleeps outside of the window.
func pausing(w v1alpha1.TaskGroupWindow) v1alpha1.TaskGroupSpec {
	return v1alpha1.TaskGroupSpec{Type: v1alpha1.TaskGroupInference, Windows: []v1alpha1.TaskGroupWindow{w}, WindowAction: v1alpha1.TaskGroupPause}
}

func (s *scene) groups() typed.TaskGroupInterface {
	return s.ourKinds().HeteroflowV1alpha1().TaskGroups(s.ns)
}

// group makes a TaskGroup whose target is the Deployment.
func (s *scene) group(name, deployment string, spec v1alpha1.TaskGroupSpec) {
	s.Helper()
	if deployment != "" {
		spec.ScaleTargetRef = &v1alpha1.TaskGroupTarget{APIVersion: "apps/v1", Kind: "Deployment", Name: deployment}
	}
	_, err := s.groups().Create(s.ctx, &v1alpha1.TaskGroup{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}, metav1.CreateOptions{})
	s.must("create task group", err)
}

// edit changes the spec of a TaskGroup.
func (s *scene) edit(group string, change func(*v1alpha1.TaskGroupSpec)) {
	s.Helper()
	s.must("edit task group", retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		g, err := s.groups().Get(s.ctx, group, metav1.GetOptions{})
		if err != nil {
			return err
		}
		change(&g.Spec)
		_, err = s.groups().Update(s.ctx, g, metav1.UpdateOptions{})
		return err
	}))
}

// opens has the group's windows be that one.
func (s *scene) opens(group string, w v1alpha1.TaskGroupWindow) {
	s.Helper()
	s.edit(group, func(spec *v1alpha1.TaskGroupSpec) { spec.Windows = []v1alpha1.TaskGroupWindow{w} })
}

// taskGroup reads a TaskGroup.
func (s *scene) taskGroup(name string) *v1alpha1.TaskGroup {
	s.Helper()
	g, err := s.groups().Get(s.ctx, name, metav1.GetOptions{})
	s.must("read task group", err)
	return g
}

// becomes waits until the group is in that state, and returns it. With phases its action
// is in one of them; "": there is none.
func (s *scene) becomes(group, state string, phases ...string) (g *v1alpha1.TaskGroup) {
	s.Helper()
	s.eventually(fmt.Sprintf("task group %s to be %s %v", group, state, phases), func() error {
		g = s.taskGroup(group)
		phase := ""
		if g.Status.Action != nil {
			phase = g.Status.Action.Phase
		}
		if g.Status.State != state || g.Status.ObservedGeneration != g.Generation || len(phases) > 0 && !slices.Contains(phases, phase) {
			return fmt.Errorf("it is %q with %q, of generation %d: %v", g.Status.State, phase, g.Status.ObservedGeneration, g.Status.Conditions)
		}
		return nil
	})
	return g
}

// disturbed waits until the group says that somebody is in its way.
func (s *scene) disturbed(group, reason string) {
	s.Helper()
	s.eventually("task group "+group+" to be disturbed", func() error {
		c := meta.FindStatusCondition(s.taskGroup(group).Status.Conditions, v1alpha1.TaskGroupUndisturbed)
		if c == nil || c.Status != metav1.ConditionFalse || c.Reason != reason {
			return fmt.Errorf("it says %v, want %s", c, reason)
		}
		return nil
	})
}

// replicas is how many the Deployment is to have.
func (s *scene) replicas(deployment string) int32 {
	s.Helper()
	scale, err := s.Client.AppsV1().Deployments(s.ns).GetScale(s.ctx, deployment, metav1.GetOptions{})
	s.must("read scale", err)
	return scale.Spec.Replicas
}

// scale is somebody's hand.
func (s *scene) scale(deployment string, replicas int32) {
	s.Helper()
	_, err := s.Client.AppsV1().Deployments(s.ns).UpdateScale(s.ctx, deployment, &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{Name: deployment, Namespace: s.ns}, Spec: autoscalingv1.ScaleSpec{Replicas: replicas}}, metav1.UpdateOptions{})
	s.must("scale", err)
}

// serves returns an error unless the Deployment is to have so many, and they run.
func (s *scene) serves(deployment string, replicas int32) error {
	if n := s.replicas(deployment); n != replicas {
		return fmt.Errorf("%s is to have %d replicas, want %d", deployment, n, replicas)
	}
	return s.podsOf(deployment, int(replicas))
}

// leaves waits until the TaskGroup is gone.
func (s *scene) leaves(group string) {
	s.Helper()
	s.eventually("task group "+group+" to go", func() error {
		g, err := s.groups().Get(s.ctx, group, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, fmt.Errorf("it is there: %v %v", g.Finalizers, g.Status))
	})
}

// deleteGroup deletes a TaskGroup.
func (s *scene) deleteGroup(name string) {
	s.Helper()
	s.must("delete task group", s.groups().Delete(s.ctx, name, metav1.DeleteOptions{}))
}

// clearServices deletes what makes pods, and lets TaskGroups go whatever they have to
// undo.
func (s *scene) clearServices(ctx context.Context, ns string) error {
	background := metav1.DeletePropagationBackground
	options := metav1.DeleteOptions{PropagationPolicy: &background}
	all := metav1.ListOptions{}
	groups := s.ourKinds().HeteroflowV1alpha1().TaskGroups(ns)
	errs := []error{groups.DeleteCollection(ctx, options, all)}
	left, err := groups.List(ctx, all)
	errs = append(errs, err)
	free, _ := json.Marshal(map[string]any{"metadata": map[string]any{"finalizers": nil}})
	for i := range left.Items {
		if _, err := groups.Patch(ctx, left.Items[i].Name, types.MergePatchType, free, metav1.PatchOptions{}); !apierrors.IsNotFound(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(append(errs, s.Client.AutoscalingV2().HorizontalPodAutoscalers(ns).DeleteCollection(ctx, options, all),
		s.Client.AppsV1().Deployments(ns).DeleteCollection(ctx, options, all))...)
}
