package replicaset

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// holdFor is how long the creation of pods pauses after a refusal that will be repeated, as in a namespace that is
// being deleted.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/controller_utils.go, ExpectationsTimeout.
const holdFor = 5 * time.Minute

// holds has the time until which no pods are created for a set, by the UID of the set. The zero value is ready for use.
type holds struct {
	mu    sync.Mutex
	until map[types.UID]time.Time
}

func (h *holds) add(set types.UID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.until == nil {
		h.until = map[types.UID]time.Time{}
	}
	for other, until := range h.until {
		if time.Now().After(until) {
			delete(h.until, other)
		}
	}
	h.until[set] = time.Now().Add(holdFor)
}

func (h *holds) has(set types.UID) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return time.Now().Before(h.until[set])
}
