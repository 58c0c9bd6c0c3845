package replicaset

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// holdFor is how long no pods are created after a refusal that will be repeated, as in a namespace that is going away.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/controller/controller_utils.go, ExpectationsTimeout.
const holdFor = 5 * time.Minute

// holds are until when no pods are created for sets, by the UID of the set. The zero value is ready for use.
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
