package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	namespace = "default"
	name      = "web"
	size      = 5
	larger    = 10

	firstImage  = "nginx:1.28"
	secondImage = "nginx:1.29"
	badImage    = "nginx:does-not-exist"
)

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

// story returns the life of a Deployment. quiet is how long a rollout must stand still to count as stuck.
func story(quiet time.Duration) []step {
	return []step{
		{
			name:  "create",
			title: fmt.Sprintf("create Service and Deployment %s: %d × %s", name, size, firstImage),
			do:    create,
			until: func(s state) progress { return s.rolledOut(size, firstImage) },
		},
		{
			name:  "endpoints",
			title: "Endpoints and EndpointSlices are filled",
			do:    nothing,
			until: func(s state) progress { return s.endpoints(size) },
		},
		{
			name:  "rollout",
			title: "roll out " + secondImage,
			do:    setImage(secondImage),
			until: func(s state) progress { return s.rolledOut(size, secondImage) },
		},
		{
			name:  "stuck",
			title: "roll out " + badImage + ", which gets stuck",
			do:    setImage(badImage),
			until: func(s state) progress { return s.stuck(badImage, secondImage) },
			hold:  quiet,
		},
		{
			name:  "rollback",
			title: "roll back to " + secondImage,
			do:    rollBack,
			until: func(s state) progress { return s.rolledOut(size, secondImage) },
		},
		{
			name:  "scale",
			title: fmt.Sprintf("scale to %d", larger),
			do:    scale(larger),
			until: func(s state) progress {
				if p := s.rolledOut(larger, secondImage); p.missing != "" {
					return p
				}
				return s.endpoints(larger)
			},
		},
		{name: "delete", title: "delete both: everything is collected", do: remove, until: state.gone},
	}
}

func nothing(context.Context, kubernetes.Interface) error { return nil }

func create(ctx context.Context, c kubernetes.Interface) error {
	labels := map[string]string{"app": name}
	_, err := c.CoreV1().Services(namespace).Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec: corev1.ServiceSpec{
			Selector: labels,
			Ports:    []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromInt32(8080)}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create the Service: %w", err)
	}
	replicas := int32(size)
	_, err = c.AppsV1().Deployments(namespace).Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					Containers: []corev1.Container{
						{Name: name, Image: firstImage, Ports: []corev1.ContainerPort{{ContainerPort: 8080}}},
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
func setImage(image string) func(context.Context, kubernetes.Interface) error {
	return func(ctx context.Context, c kubernetes.Interface) error {
		patch := fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":%q,"image":%q}]}}}}`, name, image)
		return patchDeployment(ctx, c, types.StrategicMergePatchType, []byte(patch))
	}
}

func scale(replicas int) func(context.Context, kubernetes.Interface) error {
	return func(ctx context.Context, c kubernetes.Interface) error {
		return patchDeployment(ctx, c, types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas))
	}
}

// rollBack restores the template of the previous revision, as kubectl rollout undo does.
func rollBack(ctx context.Context, c kubernetes.Interface) error {
	d, err := c.AppsV1().Deployments(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read the Deployment: %w", err)
	}
	sets, err := c.AppsV1().ReplicaSets(namespace).List(ctx,
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
	return patchDeployment(ctx, c, types.JSONPatchType, patch)
}

func patchDeployment(ctx context.Context, c kubernetes.Interface, kind types.PatchType, patch []byte) error {
	if _, err := c.AppsV1().Deployments(namespace).Patch(ctx, name, kind, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("patch the Deployment: %w", err)
	}
	return nil
}

func remove(ctx context.Context, c kubernetes.Interface) error {
	background := metav1.DeletePropagationBackground
	o := metav1.DeleteOptions{PropagationPolicy: &background}
	if err := c.AppsV1().Deployments(namespace).Delete(ctx, name, o); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete the Deployment: %w", err)
	}
	if err := c.CoreV1().Services(namespace).Delete(ctx, name, o); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete the Service: %w", err)
	}
	return nil
}
