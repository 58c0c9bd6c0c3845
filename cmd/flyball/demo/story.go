package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
)

const (
	name   = "web"
	size   = 5
	larger = 10
)

// story is the life of a Deployment in a namespace.
type story struct {
	namespace string
	// first is the image that the Deployment begins with, second the one that it is updated to. bad cannot be pulled.
	first, second, bad string
	// quiet is how long a rollout must stand still to count as stuck.
	quiet time.Duration
}

// newStory returns a story with two images. The third one is a tag of the second that does not exist.
func newStory(namespace string, images [2]string, quiet time.Duration) story {
	repository := images[1]
	if i := strings.LastIndexByte(repository, ':'); i > strings.LastIndexByte(repository, '/') {
		repository = repository[:i]
	}
	return story{
		namespace: namespace, first: images[0], second: images[1], bad: repository + ":does-not-exist", quiet: quiet,
	}
}

// nginx are the images of the story unless others are given.
var nginx = [2]string{"nginx:1.28", "nginx:1.29"}

// step is one action on the cluster and its expected outcome.
type step struct {
	name  string // one word, see [Options.Scenario]
	title string
	do    func(ctx context.Context, c kubernetes.Interface) error
	until func(s state) progress
	// hold is how long the outcome must last, for a step whose point is that nothing more happens.
	hold time.Duration
}

// progress is the progress of a step.
type progress struct {
	have, want int
	// left is the number of objects that still have to disappear, for a step without want. The largest number seen
	// counts as the start.
	left int
	// text describes the present state, in the words of the step.
	text string
	// missing describes what is expected and not yet true; it is empty when the step is done.
	missing string
}

func (s story) steps() []step {
	return []step{
		{
			name:  "create",
			title: fmt.Sprintf("create Service and Deployment %s: %d × %s", name, size, s.first),
			do:    s.create,
			until: func(now state) progress { return now.rolledOut(size, s.first) },
		},
		{
			name:  "endpoints",
			title: "Endpoints and EndpointSlices are filled",
			do:    nothing,
			until: func(now state) progress { return now.endpoints(size) },
		},
		{
			name:  "rollout",
			title: "roll out " + s.second,
			do:    s.setImage(s.second),
			until: func(now state) progress { return now.rolledOut(size, s.second) },
		},
		{
			name:  "stuck",
			title: "roll out " + s.bad + ", which gets stuck",
			do:    s.setImage(s.bad),
			until: func(now state) progress { return now.stuck(s.bad, s.second) },
			hold:  s.quiet,
		},
		{
			name:  "rollback",
			title: "roll back to " + s.second,
			do:    s.rollBack,
			until: func(now state) progress { return now.rolledOut(size, s.second) },
		},
		{
			name:  "scale",
			title: fmt.Sprintf("scale to %d", larger),
			do:    s.scale(larger),
			until: func(now state) progress {
				if p := now.rolledOut(larger, s.second); p.missing != "" {
					return p
				}
				return now.endpoints(larger)
			},
		},
		{name: "delete", title: "delete both: everything is collected", do: s.remove, until: state.gone},
	}
}

func nothing(context.Context, kubernetes.Interface) error { return nil }

func (s story) create(ctx context.Context, c kubernetes.Interface) error {
	labels := map[string]string{"app": name}
	_, err := c.CoreV1().Services(s.namespace).Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec: corev1.ServiceSpec{
			Selector: labels,
			Ports:    []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromInt32(80)}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create the Service: %w", err)
	}
	replicas := int32(size)
	_, err = c.AppsV1().Deployments(s.namespace).Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					Containers: []corev1.Container{
						{Name: name, Image: s.first, Ports: []corev1.ContainerPort{{ContainerPort: 80}}},
					},
				},
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create the Deployment: %w", err)
	}
	return nil
}

// setImage sends a strategic merge patch, as kubectl set image does.
func (s story) setImage(image string) func(context.Context, kubernetes.Interface) error {
	return func(ctx context.Context, c kubernetes.Interface) error {
		patch := fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":%q,"image":%q}]}}}}`, name, image)
		return s.patch(ctx, c, types.StrategicMergePatchType, []byte(patch))
	}
}

func (s story) scale(replicas int) func(context.Context, kubernetes.Interface) error {
	return func(ctx context.Context, c kubernetes.Interface) error {
		return s.patch(ctx, c, types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas))
	}
}

// rollBack restores the template of the previous revision, as kubectl rollout undo does.
func (s story) rollBack(ctx context.Context, c kubernetes.Interface) error {
	d, err := c.AppsV1().Deployments(s.namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read the Deployment: %w", err)
	}
	sets, err := c.AppsV1().ReplicaSets(s.namespace).List(ctx,
		metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(d.Spec.Selector)})
	if err != nil {
		return fmt.Errorf("list the ReplicaSets: %w", err)
	}
	previous := -1
	for i := range sets.Items {
		if metav1.IsControlledBy(&sets.Items[i], d) && revision(&sets.Items[i]) < revision(d) {
			if previous < 0 || revision(&sets.Items[i]) > revision(&sets.Items[previous]) {
				previous = i
			}
		}
	}
	if previous < 0 {
		return errors.New("there is no earlier revision to roll back to")
	}
	template := sets.Items[previous].Spec.Template.DeepCopy()
	delete(template.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	patch, err := json.Marshal([]map[string]any{{"op": "replace", "path": "/spec/template", "value": template}})
	if err != nil {
		return err
	}
	return s.patch(ctx, c, types.JSONPatchType, patch)
}

func (s story) patch(ctx context.Context, c kubernetes.Interface, kind types.PatchType, patch []byte) error {
	if _, err := c.AppsV1().Deployments(s.namespace).Patch(ctx, name, kind, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("patch the Deployment: %w", err)
	}
	return nil
}

func (s story) remove(ctx context.Context, c kubernetes.Interface) error {
	background := metav1.DeletePropagationBackground
	o := metav1.DeleteOptions{PropagationPolicy: &background}
	if err := c.AppsV1().Deployments(s.namespace).Delete(ctx, name, o); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete the Deployment: %w", err)
	}
	if err := c.CoreV1().Services(s.namespace).Delete(ctx, name, o); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete the Service: %w", err)
	}
	return nil
}
