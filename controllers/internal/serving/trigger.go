package serving

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/controllers/internal/pods"
)

// TriggerTimes remembers, for each Service, the times of the changes it has seen, to tell since when the change that
// a sync carries out has been waiting. Whoever reads the annotation computes the delay of the network programming
// from it. It is a good guess, not the truth: of two changes of one pod between two syncs it sees the second.
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

// NewTriggerTimes returns an empty memory.
func NewTriggerTimes() *TriggerTimes {
	return &TriggerTimes{seen: make(map[types.NamespacedName]seenTimes)}
}

// Advance notes the times of the Service and its pods and returns the earliest that is later than when they were
// last noted; zero if none is. For a Service not noted before it is the Service's creation.
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

// Forget drops what is known of a Service that is gone.
func (t *TriggerTimes) Forget(key types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.seen, key)
}
