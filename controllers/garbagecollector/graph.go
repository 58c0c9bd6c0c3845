package garbagecollector

import (
	"maps"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
)

// graph records which objects depend on which. Each change returns the work that follows from it. The graph does no I/O
// and starts no goroutines.
//
// Concurrency: safe for concurrent use. The changes of one object must come in order.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/garbagecollector/graph_builder.go, processGraphChanges
type graph struct {
	mu    sync.Mutex
	nodes map[types.UID]*node
	// absentOwners has owners that do not exist and never will, because a UID is not used again. It has its own lock.
	absentOwners *lru.Cache
}

// absentOwnersSize bounds the size of absentOwners.
const absentOwnersSize = 500

func newGraph() *graph {
	return &graph{nodes: make(map[types.UID]*node), absentOwners: lru.New(absentOwnersSize)}
}

// key is a key of both queues. In the delete queue, virtual is set if the node was virtual when it was queued; such a
// key needs no more work once a watch has shown the object. In the orphan queue, orphan is set.
type key struct {
	uid             types.UID
	virtual, orphan bool
}

// effects is the work that follows from a change of the graph.
type effects struct {
	// deletes are to be added to the delete queue, and delayedDeletes after a delay.
	deletes, delayedDeletes []key
	// orphans are to be added to the orphan queue: owners whose dependents are to be orphaned.
	orphans []types.UID
	// invalidOwnerRefs are references to owners in another namespace.
	invalidOwnerRefs []invalidOwnerRef
}

// invalidOwnerRef is a reference to an owner that is not in the namespace of the dependent.
type invalidOwnerRef struct {
	dependent  identity
	apiVersion string // of the dependent
	owner      metav1.OwnerReference
}

func (e *effects) enqueueDelete(n *node) {
	e.deletes = append(e.deletes, key{uid: n.id.uid, virtual: n.virtual})
}

func (e *effects) reportInvalidOwnerRef(dependent *node, owner types.UID) {
	for _, ref := range dependent.owners {
		if ref.UID == owner {
			e.invalidOwnerRefs = append(e.invalidOwnerRefs, invalidOwnerRef{dependent.id, dependent.apiVersion, ref})
			return
		}
	}
}

// view returns what the graph knows about an object. It returns false if the key needs no work any more.
func (g *graph) view(k key) (view, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.needsWorkLocked(k) {
		return view{}, false
	}
	return g.nodes[k.uid].view(), true
}

// needsWork reports whether the key still needs work. Unlike view, it copies nothing.
func (g *graph) needsWork(k key) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.needsWorkLocked(k)
}

func (g *graph) needsWorkLocked(k key) bool {
	n, found := g.nodes[k.uid]
	return found && (n.virtual || !k.virtual)
}

// size returns how many objects are in the graph, and how many of them are virtual.
func (g *graph) size() (all, virtual int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, n := range g.nodes {
		if n.virtual {
			virtual++
		}
	}
	return len(g.nodes), virtual
}

const (
	minCheckDelay = 5 * time.Millisecond
	maxCheckDelay = 1000 * time.Second
)

// nextCheck returns when to check a virtual node again. The delay doubles each time.
func (g *graph) nextCheck(uid types.UID) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	n, found := g.nodes[uid]
	if !found {
		return minCheckDelay
	}
	n.checks++
	return min(minCheckDelay<<min(n.checks-1, 20), maxCheckDelay)
}

// isAbsent reports whether the owner is known not to exist.
func (g *graph) isAbsent(id identity) bool {
	_, found := g.absentOwners.Get(id)
	return found
}

func (g *graph) markAbsent(id identity) { g.absentOwners.Add(id, nil) }

// observe records an object that a watch has shown. It may be new, changed or unchanged.
func (g *graph) observe(o object) effects {
	g.mu.Lock()
	defer g.mu.Unlock()
	var e effects
	n, found := g.nodes[o.id.uid]
	if !found {
		n = &node{id: o.id, dependents: make(map[types.UID]*node)}
		g.nodes[o.id.uid] = n
	}
	n.apiVersion, n.monitor = o.apiVersion, o.monitor
	g.markObservedLocked(n, o.id, &e)
	g.relinkLocked(n, o.owners, &e)
	transition(n, o, &e)
	return e
}

// markObservedLocked turns a virtual node into a real one. It queues dependents whose references describe the object
// differently, because the owner that they mean may not exist.
func (g *graph) markObservedLocked(n *node, seen identity, e *effects) {
	if !n.virtual {
		return
	}
	n.virtual = false
	if n.id == seen {
		return
	}
	_, others := partition(n.sortedDependents(), seen)
	for _, d := range others {
		if seen.namespace != "" && d.id.namespace != seen.namespace {
			e.reportInvalidOwnerRef(d, seen.uid)
		}
		e.enqueueDelete(d)
	}
	n.id = seen
}

// relinkLocked applies a change of the owner references.
func (g *graph) relinkLocked(n *node, owners []metav1.OwnerReference, e *effects) {
	added, removed, changed := diffOwners(n.owners, owners)
	for _, ref := range removed {
		g.unblockedLocked(ref, e)
		g.unlinkLocked(ref, n)
	}
	for _, c := range changed {
		if !blocking(c.now) {
			g.unblockedLocked(c.before, e)
		}
		if ownerIdentity(c.before, "") != ownerIdentity(c.now, "") {
			added = append(added, c.now)
		}
	}
	n.owners = owners
	g.linkLocked(n, added, e)
}

// unlinkLocked removes n from the dependents of the owner in ref, and returns the owner. It removes a virtual owner
// that has no dependents left.
func (g *graph) unlinkLocked(ref metav1.OwnerReference, n *node) (owner *node) {
	owner, found := g.nodes[ref.UID]
	if !found {
		return nil
	}
	delete(owner.dependents, n.id.uid)
	if owner.virtual && len(owner.dependents) == 0 {
		delete(g.nodes, ref.UID)
	}
	return owner
}

// unblockedLocked queues an owner whose deletion the reference has blocked, because the deletion may continue now.
func (g *graph) unblockedLocked(before metav1.OwnerReference, e *effects) {
	if owner, found := g.nodes[before.UID]; found && blocking(before) {
		e.enqueueDelete(owner)
	}
}

// linkLocked makes n a dependent of its owners. An owner that is not in the graph gets a virtual node, and is verified
// later. If an owner in the graph does not match the reference, n is verified too.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/garbagecollector/graph_builder.go, addDependentToOwners
func (g *graph) linkLocked(n *node, owners []metav1.OwnerReference, e *effects) {
	unverified := false
	for _, ref := range owners {
		owner, found := g.nodes[ref.UID]
		if !found {
			owner = &node{id: ownerIdentity(ref, n.id.namespace), virtual: true, dependents: make(map[types.UID]*node)}
			g.nodes[ref.UID] = owner
			e.enqueueDelete(owner)
		}
		owner.dependents[n.id.uid] = n
		if !found {
			continue
		}
		elsewhere := owner.id.namespace != n.id.namespace
		switch {
		case owner.id.namespace != "" && elsewhere:
			if !owner.virtual {
				e.reportInvalidOwnerRef(n, ref.UID)
			}
			unverified = true
		case !owner.id.namedBy(ref):
			unverified = true
			if matching, _ := partition(owner.sortedDependents(), owner.id); owner.virtual && len(matching) == 0 {
				owner.id = ownerIdentity(ref, n.id.namespace) // No reference describes it in the old way any more.
				e.enqueueDelete(owner)
			}
		case elsewhere && owner.virtual:
			// A cluster-scoped dependent named this owner first, so its node has no namespace. That may be wrong.
			unverified = true
		}
	}
	if unverified {
		e.enqueueDelete(n)
	}
}

// transition records how far the deletion of the object has come, and queues the work that this starts.
func transition(n *node, o object, e *effects) {
	orphaning := o.deleting && o.orphan
	deleting := o.deleting && o.foreground && !orphaning // with both finalizers, orphaning comes first
	switch {
	case orphaning && !n.orphaningDependents:
		e.orphans = append(e.orphans, n.id.uid)
	case deleting && !n.deletingDependents:
		for _, d := range n.sortedDependents() {
			e.enqueueDelete(d)
		}
		e.enqueueDelete(n)
	}
	n.deleting, n.orphaningDependents, n.deletingDependents = o.deleting, orphaning, deleting
}

// forget removes an object after its deletion was observed.
func (g *graph) forget(id identity) effects {
	g.mu.Lock()
	defer g.mu.Unlock()
	var e effects
	if n, found := g.nodes[id.uid]; found {
		g.removeLocked(n, id, &e)
	}
	return e
}

// removeLocked removes n. It queues n's dependents, which may have no owner now, and owners that may wait for n.
func (g *graph) removeLocked(n *node, id identity, e *effects) {
	delete(g.nodes, n.id.uid)
	if len(n.dependents) > 0 {
		g.markAbsent(id)
	}
	for _, d := range n.sortedDependents() {
		e.enqueueDelete(d)
	}
	g.unlinkOwnersLocked(n, e)
}

// unlinkOwnersLocked removes n from the dependents of all its owners, and queues owners that may wait for n.
func (g *graph) unlinkOwnersLocked(n *node, e *effects) {
	for _, ref := range n.owners {
		if owner := g.unlinkLocked(ref, n); owner != nil && owner.deletingDependents {
			e.enqueueDelete(owner)
		}
	}
	n.owners = nil
}

// forgetMonitors handles the objects that only stopped monitors have read. Such an object may have been deleted
// unnoticed. If it has dependents, its node becomes virtual, as for any owner without a watch, and is queued to be
// verified. Otherwise the node is removed.
func (g *graph) forgetMonitors(stopped []int64) effects {
	g.mu.Lock()
	defer g.mu.Unlock()
	var e effects
	for _, uid := range slices.Sorted(maps.Keys(g.nodes)) {
		n := g.nodes[uid]
		if n == nil || n.virtual || !slices.Contains(stopped, n.monitor) {
			continue
		}
		g.unlinkOwnersLocked(n, &e)
		if len(n.dependents) == 0 {
			delete(g.nodes, uid)
			continue
		}
		n.virtual, n.checks = true, 0
		n.deleting, n.deletingDependents, n.orphaningDependents = false, false, false
		e.enqueueDelete(n)
	}
	return e
}

// virtualDelete records that the API server has no object of that identity, and removes the node. In two cases the node
// with this UID stays. Either a watch has shown the object with another identity; or the node is virtual and other
// dependents describe the owner differently, so an object of their description may exist.
func (g *graph) virtualDelete(id identity) effects {
	g.mu.Lock()
	defer g.mu.Unlock()
	var e effects
	n, found := g.nodes[id.uid]
	if !found {
		return e
	}
	matching, others := partition(n.sortedDependents(), id)
	contested := n.virtual && len(others) > 0
	if !contested && (n.virtual || n.id == id) {
		g.removeLocked(n, id, &e)
		return e
	}
	if len(matching) > 0 {
		g.markAbsent(id)
		for _, d := range matching {
			e.enqueueDelete(d)
		}
	}
	if contested && n.id == id {
		if next, ok := alternative(others, id); ok {
			n.id = next
			e.delayedDeletes = append(e.delayedDeletes, key{uid: id.uid, virtual: true})
		}
	}
	return e
}

// changedOwner is a reference to the same UID in which other fields changed.
type changedOwner struct{ before, now metav1.OwnerReference }

// diffOwners compares references by UID. The results are in the order of the lists.
func diffOwners(before, now []metav1.OwnerReference) (added, removed []metav1.OwnerReference, changed []changedOwner) {
	for _, ref := range now {
		at := slices.IndexFunc(before, func(b metav1.OwnerReference) bool { return b.UID == ref.UID })
		switch {
		case at < 0:
			added = append(added, ref)
		case !equalOwner(before[at], ref):
			changed = append(changed, changedOwner{before[at], ref})
		}
	}
	for _, ref := range before {
		if !slices.ContainsFunc(now, func(n metav1.OwnerReference) bool { return n.UID == ref.UID }) {
			removed = append(removed, ref)
		}
	}
	return added, removed, changed
}

// equalOwner compares references. An absent blockOwnerDeletion equals false.
func equalOwner(a, b metav1.OwnerReference) bool {
	return a.UID == b.UID && a.APIVersion == b.APIVersion && a.Kind == b.Kind && a.Name == b.Name &&
		blocking(a) == blocking(b)
}
