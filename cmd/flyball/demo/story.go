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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/flyball-dev/flyball/client"
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
	// cut cuts the leader off from its lease.
	cut func()
	// network is between the controllers and the API.
	network *network
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
	// chapter is the page of the book that explains it, without its ending.
	chapter string
	do      func(ctx context.Context, c client.Client) error
	until   func(s state) progress
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
		s.creation("create", "11-deployment"),
		{
			name: "endpoints", chapter: "10-endpoints",
			title: "Endpoints and EndpointSlices are filled",
			do:    nothing,
			until: func(now state) progress { return now.endpoints(size) },
		},
		{
			name: "rollout", chapter: "11-deployment",
			title: "roll out " + s.second,
			do:    s.setImage(s.second),
			until: func(now state) progress { return now.rolledOut(size, s.second) },
		},
		{
			name: "stuck", chapter: "11-deployment",
			title: "roll out " + s.bad + ", which gets stuck",
			do:    s.setImage(s.bad),
			until: func(now state) progress { return now.stuck(s.bad, s.second) },
			hold:  s.quiet,
		},
		{
			name: "rollback", chapter: "11-deployment",
			title: "roll back to " + s.second,
			do:    s.rollBack,
			until: func(now state) progress { return now.rolledOut(size, s.second) },
		},
		{
			name: "scale", chapter: "09-read-your-writes",
			title: fmt.Sprintf("scale to %d", larger),
			do:    s.scale(larger),
			until: func(now state) progress {
				if p := now.rolledOut(larger, s.second); p.missing != "" {
					return p
				}
				return now.endpoints(larger)
			},
		},
		{
			name: "delete", chapter: "11-deployment",
			title: "delete both: everything is collected",
			do:    s.remove,
			until: state.gone,
		},
	}
}

// leaseSteps are the life of a lease. Two programs compete for it: a, which is first, and b.
func (s story) leaseSteps() []step {
	led := func(by string, size int) func(state) progress {
		return func(now state) progress {
			p := now.rolledOut(size, s.first)
			if p.text = now.leads() + ", " + p.text; now.leader != by {
				p.missing = by + " as the leader"
			}
			return p
		}
	}
	return []step{
		{
			name: "leader", chapter: "12-process",
			title: fmt.Sprintf("a leads, b waits: create %s, %d × %s", name, size, s.first),
			do:    s.create,
			until: led("a", size),
		},
		{
			name: "lease", chapter: "12-process",
			title: "cut a off from its lease",
			do:    func(context.Context, client.Client) error { s.cut(); return nil },
			until: func(now state) progress {
				p := progress{want: 1, text: now.leads()}
				if p.have = 1; now.leader != "" {
					p.have, p.missing = 0, now.leader+" to end, 10 s after its last renewal"
				}
				return p
			},
		},
		{
			name: "takeover", chapter: "12-process",
			title: fmt.Sprintf("scale to %d, which waits until b leads", larger),
			do:    s.scale(larger),
			until: led("b", larger),
		},
	}
}

// creation is the first step of a story: the Deployment with its Service.
func (s story) creation(called, chapter string) step {
	return step{
		name: called, chapter: chapter,
		title: fmt.Sprintf("create Service and Deployment %s: %d × %s", name, size, s.first),
		do:    s.create,
		until: func(now state) progress { return now.rolledOut(size, s.first) },
	}
}

// awayFor is how long the API is away.
const awayFor = 5 * time.Second

// troubleSteps are the troubles of chapters 3 and 9, one after the other.
func (s story) troubleSteps() []step {
	return []step{
		s.creation("start", "09-read-your-writes"),
		{
			name: "lost", chapter: "09-read-your-writes",
			title: fmt.Sprintf("scale to %d; one create is done, its answer lost", larger),
			do: func(ctx context.Context, c client.Client) error {
				s.network.loses.Store(true)
				return s.scale(larger)(ctx, c)
			},
			until: func(now state) progress {
				p := now.rolledOut(larger, s.first)
				if s.network.loses.Load() {
					p.missing = "an answer that gets lost"
				}
				return p
			},
		},
		{
			name: "away", chapter: "03-reflector",
			title: fmt.Sprintf("the API is away for %s; scale to %d", awayFor, size),
			do: func(ctx context.Context, c client.Client) error {
				s.network.leave()
				time.AfterFunc(awayFor, s.network.comeBack)
				return s.scale(size)(ctx, c)
			},
			until: func(now state) progress { return now.rolledOut(size, s.first) },
		},
		{
			name: "forgotten", chapter: "03-reflector",
			title: "the API ends all watches and forgets; update",
			do: func(ctx context.Context, c client.Client) error {
				s.network.leave()
				defer s.network.comeBack()
				return errors.Join(s.setImage(s.second)(ctx, c), s.network.forget(ctx))
			},
			until: func(now state) progress { return now.rolledOut(size, s.second) },
		},
	}
}

func nothing(context.Context, client.Client) error { return nil }

func (s story) create(ctx context.Context, c client.Client) error {
	labels := map[string]string{"app": name}
	err := c.Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name, Labels: labels},
		Spec: corev1.ServiceSpec{
			Selector: labels,
			Ports:    []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromInt32(80)}},
		},
	})
	if err != nil {
		return fmt.Errorf("create the Service: %w", err)
	}
	replicas := int32(size)
	err = c.Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name, Labels: labels},
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
	})
	if err != nil {
		return fmt.Errorf("create the Deployment: %w", err)
	}
	return nil
}

// setImage sends a strategic merge patch, as kubectl set image does.
func (s story) setImage(image string) func(context.Context, client.Client) error {
	return func(ctx context.Context, c client.Client) error {
		patch := fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":%q,"image":%q}]}}}}`, name, image)
		return s.patch(ctx, c, types.StrategicMergePatchType, []byte(patch))
	}
}

func (s story) scale(replicas int) func(context.Context, client.Client) error {
	return func(ctx context.Context, c client.Client) error {
		return s.patch(ctx, c, types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas))
	}
}

// rollBack restores the template of the previous revision, as kubectl rollout undo does.
func (s story) rollBack(ctx context.Context, c client.Client) error {
	d, sets := &appsv1.Deployment{}, &appsv1.ReplicaSetList{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: name}, d); err != nil {
		return fmt.Errorf("read the Deployment: %w", err)
	}
	selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	if err != nil {
		return fmt.Errorf("read the Deployment's selector: %w", err)
	}
	err = c.List(ctx, sets, client.InNamespace(s.namespace), client.MatchingLabelsSelector{Selector: selector})
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

// meta returns the name of the Deployment, which is also that of the Service.
func (s story) meta() metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: s.namespace, Name: name} }

func (s story) patch(ctx context.Context, c client.Client, kind types.PatchType, patch []byte) error {
	d := &appsv1.Deployment{ObjectMeta: s.meta()}
	if err := c.Patch(ctx, d, client.RawPatch(kind, patch)); err != nil {
		return fmt.Errorf("patch the Deployment: %w", err)
	}
	return nil
}

func (s story) remove(ctx context.Context, c client.Client) error {
	for _, obj := range []client.Object{
		&appsv1.Deployment{ObjectMeta: s.meta()}, &corev1.Service{ObjectMeta: s.meta()},
	} {
		err := c.Delete(ctx, obj, client.PropagationPolicy(metav1.DeletePropagationBackground))
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete %T: %w", obj, err)
		}
	}
	return nil
}
