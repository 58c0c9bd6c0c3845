package citest

import (
	"errors"
	"net/http"
	"sync"
)

// life is that of a process, until it dies. A death is what kill -9 is to the clusters, without a process: from one of its writes on,
// nothing that it asks for reaches them, the renewal of its lease included.
type life struct {
	mu sync.Mutex
	// left is how many writes to the cluster there are still, the one that it dies at among them; 0: no end is planned.
	left    int
	cluster string
	// applied says that the last write takes effect, although nobody hears of it any more.
	applied bool
	dead    bool
	// asked is how many requests have gone to each cluster.
	asked map[string]int
}

// DieAt has the process of that name, a fleet that was made before, die at its n-th write to the cluster from now on: before it
// takes effect or, if applied, after.
func (w *World) DieAt(process, cluster string, n int, applied bool) {
	l := w.lives[process]
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cluster, l.left, l.applied = cluster, n, applied
}

// IsDead says whether the process has died.
func (w *World) IsDead(process string) bool {
	l := w.lives[process]
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dead
}

// Requests are how often the process of that name has asked the cluster for something, while it lived.
func (w *World) Requests(process, cluster string) int {
	l := w.lives[process]
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.asked[cluster]
}

// begin says of a request to the cluster whether it reaches it, and whether its answer is heard.
func (l *life) begin(cluster string, r *http.Request) (sent, heard bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead {
		return false, false
	}
	l.asked[cluster]++
	if cluster != l.cluster || r.Method == http.MethodGet || l.left == 0 {
		return true, true
	}
	l.left--
	l.dead = l.left == 0
	return !l.dead || l.applied, !l.dead
}

// in is the way from the process to a cluster.
func (l *life) in(cluster string) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper { return &mortal{l, cluster, next} }
}

// mortal is an http.RoundTripper that ends with its process.
type mortal struct {
	*life
	cluster string
	next    http.RoundTripper
}

var errKilled = errors.New("killed")

// RoundTrip implements http.RoundTripper.
func (m *mortal) RoundTrip(r *http.Request) (*http.Response, error) {
	sent, heard := m.begin(m.cluster, r)
	if !sent {
		return nil, errKilled
	}
	answer, err := m.next.RoundTrip(r)
	if heard || err != nil {
		return answer, err
	}
	_ = answer.Body.Close()
	return nil, errKilled
}
