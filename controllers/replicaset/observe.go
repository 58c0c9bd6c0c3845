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

// kind is the kind in the owner references of a ReplicaSet's pods.
var kind = appsv1.SchemeGroupVersion.WithKind("ReplicaSet")

// observe gathers what the plan needs. It first adopts orphans and releases pods that no longer match, so that
// ownership is settled before pods are counted. It neither adopts nor releases pods that are not active.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/replicaset/replica_set.go, syncReplicaSet
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

// selectorOf returns set's selector. The API server already rejects the selectors that fail here. The checks guard
// against two disasters: a set that does not match its own pods would create pods without end, and a set that matches
// everything would adopt all orphans.
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

// relatedPods returns the pods selected by the ReplicaSets that have the same controller as set, including set itself.
// For a Deployment these are the pods of all revisions. A set without a controller has none, not even its own.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/replicaset/replica_set.go, getIndirectlyRelatedPods
func (r *reconciler) relatedPods(set *appsv1.ReplicaSet) []*corev1.Pod {
	controller := metav1.GetControllerOfNoCopy(set)
	if controller == nil {
		return nil
	}
	siblings, err := claim.Controlled(r.sets, controller.UID)
	if err != nil {
		return nil // the index is missing, but New adds it
	}
	var related []*corev1.Pod
	for _, sibling := range siblings {
		selector, err := metav1.LabelSelectorAsSelector(sibling.Spec.Selector)
		if err != nil {
			continue // it selects nothing
		}
		selected, err := pods.Selected(r.pods, sibling.Namespace, selector)
		if err != nil {
			return nil // the index is missing, but New adds it
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
