package main

import (
	"errors"
	"net/http"
	"sync"
)

// life is the life of a process, until it dies. To the clusters, its death looks like kill -9, but no real process is
// needed: from one of its writes on, no request reaches them, including renewals of its lease.
type life struct {
	mu sync.Mutex
	// left is the number of writes to the cluster until the process dies, counting the one at which it dies. 0 means
	// that it does not die.
	left    int
	cluster string
	// applied means that the last write takes effect, although the process does not get the answer.
	applied bool
	dead    bool
	// asked counts the requests to each cluster.
	asked map[string]int
}

// DieAt makes the process of that name, a fleet made before, die at its n-th write to the cluster from now on: before
// the write takes effect or, if applied, after it.
func (w *World) DieAt(process, cluster string, n int, applied bool) {
	l := w.lives[process]
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cluster, l.left, l.applied = cluster, n, applied
}

// IsDead reports whether the process has died.
func (w *World) IsDead(process string) bool {
	l := w.lives[process]
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dead
}

// Requests returns how many requests the process of that name sent to the cluster while it lived.
func (w *World) Requests(process, cluster string) int {
	l := w.lives[process]
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.asked[cluster]
}

// begin reports whether a request reaches the cluster, and whether the process gets the answer.
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

// in returns the wrapper of the process's transport to a cluster.
func (l *life) in(cluster string) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper { return &mortal{l, cluster, next} }
}

// mortal is an http.RoundTripper that stops working when its process dies.
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
