package kubelet

import (
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/internal/versions"
	"github.com/flyball-dev/flyball/reconcile"
)

// podRecords holds what the pod loop remembers of each pod from its first to its last event: its node, its addresses,
// when it entered a stage, and the last write.
//
// Concurrency: safe for concurrent use.
type podRecords struct {
	mu    sync.Mutex
	pools []*pool
	// entries has an entry for each pod that the loop remembers anything about.
	entries map[types.UID]*entry
	// load counts the entries of each node. Invariant: no zero values.
	load map[string]int
	// unplaced holds the pods that no node had room for when they were last tried.
	unplaced map[reconcile.Request]bool
}

type entry struct {
	node string
	ips  []netip.Addr // one of each pool, or none
	// entered holds when the pod was first seen in each stage of its life.
	entered map[string]time.Time
	// written is the resource version of the last write. Older states in the cache are ignored.
	written string
	// done means that the last request for the pod was sent: it remains only to wait for its end.
	done bool
}

func newPodRecords(cidrs []string) (*podRecords, error) {
	l := &podRecords{
		entries: make(map[types.UID]*entry), load: make(map[string]int),
		unplaced: make(map[reconcile.Request]bool),
	}
	for _, cidr := range cidrs {
		p, err := newPool(cidr)
		if err != nil {
			return nil, err
		}
		l.pools = append(l.pools, p)
	}
	return l, nil
}

func (l *podRecords) entryLocked(uid types.UID) *entry {
	e := l.entries[uid]
	if e == nil {
		e = &entry{entered: make(map[string]time.Time)}
		l.entries[uid] = e
	}
	return e
}

// adopt records the node and addresses that a pod already has. A pod that has ended takes no room on its node.
func (l *podRecords) adopt(pod *corev1.Pod) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if pod.Spec.NodeName == "" {
		return
	}
	delete(l.unplaced, reconcile.RequestFor(pod))
	e := l.entryLocked(pod.UID)
	if terminal(pod) {
		l.unloadLocked(e)
	} else {
		l.placeLocked(e, pod.Spec.NodeName)
	}
	if len(e.ips) > 0 || pod.Spec.HostNetwork {
		return
	}
	for _, ip := range pod.Status.PodIPs {
		if a, err := netip.ParseAddr(ip.IP); err == nil {
			for _, p := range l.pools {
				if p.reserve(a) {
					e.ips = append(e.ips, a)
				}
			}
		}
	}
}

func (l *podRecords) placeLocked(e *entry, node string) {
	if e.node == node {
		return
	}
	l.unloadLocked(e)
	e.node = node
	l.load[node]++
}

func (l *podRecords) unloadLocked(e *entry) {
	if e.node == "" {
		return
	}
	if l.load[e.node]--; l.load[e.node] == 0 {
		delete(l.load, e.node)
	}
	e.node = ""
}

// place chooses a node among the candidates, whose pods field it fills in, and reserves room on it. It returns the node
// and whether the pod had been placed before, or else the reason why no node fits.
func (l *podRecords) place(pod *corev1.Pod, candidates []candidate) (node string, before bool, reason string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.entries[pod.UID]; e != nil && e.node != "" {
		return e.node, true, ""
	}
	for i := range candidates {
		candidates[i].pods = l.load[candidates[i].node.Name]
	}
	node, reason = place(pod, candidates)
	if node == "" {
		l.unplaced[reconcile.RequestFor(pod)] = true
		return "", false, reason
	}
	delete(l.unplaced, reconcile.RequestFor(pod))
	l.placeLocked(l.entryLocked(pod.UID), node)
	return node, false, ""
}

// unplace gives the room back after a failed bind.
func (l *podRecords) unplace(uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.entries[uid]; e != nil {
		l.unloadLocked(e)
	}
}

// addresses returns the pod's addresses. The first call reserves them.
func (l *podRecords) addresses(uid types.UID) ([]string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entryLocked(uid)
	for len(e.ips) < len(l.pools) {
		a, err := l.pools[len(e.ips)].take()
		if err != nil {
			return nil, err
		}
		e.ips = append(e.ips, a)
	}
	ips := make([]string, 0, len(e.ips))
	for _, a := range e.ips {
		ips = append(ips, a.String())
	}
	return ips, nil
}

// since returns how long the pod has been in a stage. The stage begins with the first call for it.
func (l *podRecords) since(uid types.UID, stage string, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entryLocked(uid)
	if _, found := e.entered[stage]; !found {
		e.entered[stage] = now
	}
	return now.Sub(e.entered[stage])
}

// wrote records the resource version after a write.
func (l *podRecords) wrote(uid types.UID, version string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entryLocked(uid).written = version
}

// overtaken reports whether the cache shows the pod as it was before the last write.
func (l *podRecords) overtaken(pod *corev1.Pod) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entries[pod.UID]
	return e != nil && versions.Earlier(pod.ResourceVersion, e.written)
}

// finished reports whether the last request for a pod was sent.
func (l *podRecords) finished(uid types.UID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.entries[uid] != nil && l.entries[uid].done
}

func (l *podRecords) finish(uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entryLocked(uid).done = true
}

// forget releases all that a pod had, and returns the pods that may now find room.
func (l *podRecords) forget(pod *corev1.Pod) []reconcile.Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.unplaced, reconcile.RequestFor(pod))
	e := l.entries[pod.UID]
	if e == nil {
		return nil
	}
	delete(l.entries, pod.UID)
	l.unloadLocked(e)
	for _, a := range e.ips {
		for _, p := range l.pools {
			p.release(a)
		}
	}
	return l.waitingLocked()
}

// waiting returns the pods that no node had room for.
func (l *podRecords) waiting() []reconcile.Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waitingLocked()
}

func (l *podRecords) waitingLocked() []reconcile.Request {
	return slices.Collect(maps.Keys(l.unplaced))
}
