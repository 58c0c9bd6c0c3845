package replicaset

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/controllers/internal/claim"
	"github.com/flyball-dev/flyball/controllers/internal/pods"
	"github.com/flyball-dev/flyball/reconcile"
)

// kind is how a ReplicaSet is named in the owner references of its pods.
var kind = appsv1.SchemeGroupVersion.WithKind("ReplicaSet")

// observe gathers what a plan for set is made from. On the way it adopts orphans and releases strays, so that who
// owns which pod is settled before anything is counted. Pods that are not active are neither adopted nor released.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/controller/replicaset/replica_set.go, syncReplicaSet
func (r *reconciler) observe(ctx context.Context, set *appsv1.ReplicaSet) (observed, error) {
	selector, err := selectorOf(set)
	if err != nil {
		return observed{}, reconcile.Terminal(err)
	}
	o := observed{set: set, now: time.Now(), settled: !r.refused.has(set.UID)}
	candidates, err := claim.Candidates(r.pods, set)
	if err != nil {
		return observed{}, err
	}
	var active []*corev1.Pod
	for _, pod := range candidates {
		switch {
		case pods.Active(pod):
			active = append(active, pod)
		case pods.Terminating(pod) && metav1.IsControlledBy(pod, set) && selector.Matches(labels.Set(pod.Labels)):
			o.terminating = append(o.terminating, pod)
		}
	}
	sortByName(active)
	if o.active, err = claim.New[*corev1.Pod](r.client, set, kind, selector).Claim(ctx, active); err != nil {
		return observed{}, err
	}
	o.related = func() []*corev1.Pod { return r.relatedPods(set) }
	return o, nil
}

// selectorOf is set's selector. The API server lets nothing else through, but a set whose own pods would not match,
// or whose selector takes whatever is there, must not get to work: the one would create pods without end, the other
// adopt all orphans.
func selectorOf(set *appsv1.ReplicaSet) (labels.Selector, error) {
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	switch {
	case err != nil:
		return nil, fmt.Errorf("selector: %w", err)
	case set.Spec.Selector == nil || selector.Empty():
		return nil, errors.New("selector is empty")
	case !selector.Matches(labels.Set(set.Spec.Template.Labels)):
		return nil, errors.New("selector does not match the labels of the template")
	}
	return selector, nil
}

// relatedPods are the pods selected by the ReplicaSets that have the same controller as set, itself among them: those
// of all revisions of a Deployment. A set without a controller has none, not even its own.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/controller/replicaset/replica_set.go, getIndirectlyRelatedPods
func (r *reconciler) relatedPods(set *appsv1.ReplicaSet) []*corev1.Pod {
	controller := metav1.GetControllerOfNoCopy(set)
	if controller == nil {
		return nil
	}
	siblings, err := claim.Controlled(r.sets, controller.UID)
	if err != nil {
		return nil // no such index: New adds it
	}
	var related []*corev1.Pod
	for _, sibling := range siblings {
		selector, err := metav1.LabelSelectorAsSelector(sibling.Spec.Selector)
		if err != nil {
			continue // it selects nothing
		}
		selected, err := pods.Selected(r.pods, sibling.Namespace, selector)
		if err != nil {
			return nil // no such index: New adds it
		}
		related = append(related, selected...)
	}
	return distinct(related)
}

// distinct drops repeated pods: selectors may overlap.
func distinct(list []*corev1.Pod) []*corev1.Pod {
	seen := make(map[types.UID]bool, len(list))
	return slices.DeleteFunc(list, func(pod *corev1.Pod) bool {
		again := seen[pod.UID]
		seen[pod.UID] = true
		return again
	})
}
