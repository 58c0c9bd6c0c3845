package serving

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/controllers/internal/pods"
)

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
