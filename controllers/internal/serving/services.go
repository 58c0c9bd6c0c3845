package serving

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/controllers/internal/pods"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/reconcile"
)

// AskAgain is how long a controller waits when its caches lack an object that the server has. Usually the object's
// event queues the key before. If the object is gone again before the caches see it, there is no event.
const AskAgain = 10 * time.Second

// Services is a set of Services. The zero value is empty.
//
// Concurrency: safe for concurrent use.
type Services struct {
	mu   sync.Mutex
	keys map[types.NamespacedName]bool // every value is true
}

// Set adds the Service if in is true, and otherwise removes it.
func (s *Services) Set(key types.NamespacedName, in bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !in {
		delete(s.keys, key)
		return
	}
	if s.keys == nil {
		s.keys = make(map[types.NamespacedName]bool)
	}
	s.keys[key] = true
}

// Has reports whether the Service is in the set.
func (s *Services) Has(key types.NamespacedName) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.keys[key]
}

// All returns the Services in the set, in no particular order.
func (s *Services) All() []types.NamespacedName {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.keys))
}

// Gate postpones the sync of a Service until the caches show its last writes: a plan made before that would be refused,
// or repeat what is done.
//
// Concurrency: safe for concurrent use.
type Gate struct {
	client  *client.Cluster
	waiting Services
}

// NewGate returns a gate for what c writes.
func NewGate(c *client.Cluster) *Gate { return &Gate{client: c} }

// Ready is a function for [reconcile.Options].Ready.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/endpoint/endpoints_tracker.go and k8s.io/endpointslice v0.37.2
// util/endpointslice_tracker.go; there the wait is an error, with backoff
func (g *Gate) Ready(ctx context.Context, key reconcile.Request) error {
	g.waiting.Set(key.NamespacedName, true) // before the cache is read, so that no event is missed
	err := g.client.Seen(client.OwnerFrom(ctx))
	if err == nil {
		g.waiting.Set(key.NamespacedName, false)
	}
	return err
}

// Wake queues a Service whose sync waits. Event handlers call it for every change of what is written for the Service.
func (g *Gate) Wake(key types.NamespacedName, q reconcile.Enqueuer[reconcile.Request]) {
	if g.waiting.Has(key) {
		q.Add(reconcile.Request{NamespacedName: key})
	}
}

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

// TriggerTimes remembers the times of the changes of each Service and its pods, to determine how long the change that a
// sync publishes has waited. Readers of the annotation compute the delay of network programming from it. The time is an
// estimate: of two changes of one pod between two syncs, only the second is seen.
//
// Concurrency: safe for concurrent use, but [TriggerTimes.Advance] must not be called twice at once for one Service.
//
// Source: k8s.io/endpointslice v0.37.2 util/trigger_time_tracker.go
type TriggerTimes struct {
	mu sync.Mutex
	// seen has an entry for each Service that was synced and not forgotten.
	seen map[types.NamespacedName]seenTimes
}

type seenTimes struct {
	service time.Time
	pods    map[string]time.Time // by name; only pods that have a Ready condition
}

// NewTriggerTimes returns a TriggerTimes that knows no Service.
func NewTriggerTimes() *TriggerTimes {
	return &TriggerTimes{seen: make(map[types.NamespacedName]seenTimes)}
}

// Advance records the times of the Service and its pods. It returns the earliest that is later than the one recorded
// before, or zero if there is none. For a Service that is new to it, it returns the Service's creation time.
func (t *TriggerTimes) Advance(svc *corev1.Service, members []*corev1.Pod) time.Time {
	key := types.NamespacedName{Namespace: svc.Namespace, Name: svc.Name}
	now := seenTimes{service: svc.CreationTimestamp.Time, pods: make(map[string]time.Time, len(members))}
	t.mu.Lock()
	before, known := t.seen[key]
	t.seen[key] = now // the caller is the only one to read or write this entry's map
	t.mu.Unlock()

	var earliest time.Time
	changed := func(at, last time.Time) {
		if at.After(last) && (earliest.IsZero() || at.Before(earliest)) {
			earliest = at
		}
	}
	for _, pod := range members {
		if c := pods.ReadyCondition(pod); c != nil && !c.LastTransitionTime.IsZero() {
			now.pods[pod.Name] = c.LastTransitionTime.Time
			changed(c.LastTransitionTime.Time, before.pods[pod.Name])
		}
	}
	changed(now.service, before.service)
	if !known {
		return svc.CreationTimestamp.Time
	}
	return earliest
}

// Forget removes the record of a Service that is gone.
func (t *TriggerTimes) Forget(key types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.seen, key)
}
