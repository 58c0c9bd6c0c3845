package serving

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/reconcile"
)

// selectorIndex finds the Services of a namespace whose selector asks for a given label.
const selectorIndex = "serving/selector"

// Finder finds the Services that select a pod.
//
// Concurrency: safe for concurrent use.
type Finder struct {
	services informer.Informer[*corev1.Service]
}

// NewFinder returns a Finder for the Services of an informer. It adds an index to the informer if that does not have
// it.
func NewFinder(services informer.Informer[*corev1.Service]) (*Finder, error) {
	if err := services.AddIndex(selectorIndex, indexBySelector); err != nil &&
		!errors.Is(err, informer.ErrIndexExists) {
		return nil, fmt.Errorf("index Services by selector: %w", err)
	}
	return &Finder{services: services}, nil
}

// indexBySelector files a Service under the first label of its selector, in the order of the keys. A pod that the
// Service selects has that label, so looking up all labels of a pod finds all of its Services and few others, however
// many there are in the namespace.
func indexBySelector(svc *corev1.Service) ([]string, error) {
	if svc.Spec.Selector == nil {
		return nil, nil // selects nothing
	}
	if len(svc.Spec.Selector) == 0 {
		return []string{selectorValue(svc.Namespace, "", "")}, nil // selects everything
	}
	first := slices.Min(slices.Collect(maps.Keys(svc.Spec.Selector)))
	return []string{selectorValue(svc.Namespace, first, svc.Spec.Selector[first])}, nil
}

// selectorValue is unambiguous: a namespace contains neither "=" nor "/", and a label contains no "=".
func selectorValue(namespace, key, value string) string { return namespace + "/" + key + "=" + value }

// Selecting returns the Services that select a pod with these labels, sorted by name.
//
// Source: k8s.io/endpointslice v0.37.2 util/controller_utils.go, getServicesForPod
func (f *Finder) Selecting(ctx context.Context, namespace string, podLabels map[string]string) []reconcile.Request {
	candidates := []string{selectorValue(namespace, "", "")}
	for key, value := range podLabels {
		candidates = append(candidates, selectorValue(namespace, key, value))
	}
	var found []reconcile.Request
	for _, value := range candidates {
		services, err := f.services.ByIndex(selectorIndex, value)
		if err != nil {
			klog.FromContext(ctx).Error(err, "Cannot find the Services of a pod", "namespace", namespace)
			return nil
		}
		for _, svc := range services {
			if selects(svc.Spec.Selector, podLabels) {
				found = append(found, reconcile.RequestFor(svc))
			}
		}
	}
	slices.SortFunc(found, func(a, b reconcile.Request) int { return cmp.Compare(a.Name, b.Name) })
	return found
}

func selects(selector, podLabels map[string]string) bool {
	for key, want := range selector {
		if value, found := podLabels[key]; !found || value != want {
			return false
		}
	}
	return true
}
