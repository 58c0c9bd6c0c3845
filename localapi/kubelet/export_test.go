package kubelet

import "github.com/flyball-dev/flyball/reconcile"

// Stats counts what the kubelet did.
type Stats struct {
	// Bound counts the pods that were given a node, Started those that were reported running, and Removed those that
	// were finally deleted.
	Bound, Started, Removed int64
	// Writes counts all requests that changed something, including those for nodes.
	Writes int64
	// Addresses is the number of addresses in use.
	Addresses int
	// Nodes and Pods are the counters of the two loops.
	Nodes, Pods reconcile.Stats
}

// Stats returns a snapshot of the counters.
func (k *fake) Stats() Stats {
	return Stats{
		Bound: k.counts.bound.Load(), Started: k.counts.started.Load(), Removed: k.counts.removed.Load(),
		Writes:    k.counts.writes.Load(),
		Addresses: k.records.addressesInUse(), Nodes: k.nodeLoop.Stats(), Pods: k.podLoop.Stats(),
	}
}

// Fake is what New returns.
type Fake = fake

// addressesInUse counts the addresses that are taken.
func (l *podRecords) addressesInUse() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, p := range l.pools {
		n += len(p.taken)
	}
	return n
}
