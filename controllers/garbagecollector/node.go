package garbagecollector

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// identity names an object. It has no version, because an object is the same in all versions of its kind, and the
// version in an owner reference may not be served any more.
type identity struct {
	kind      schema.GroupKind
	namespace string // "" for a cluster-scoped object, or if it is not known
	name      string
	uid       types.UID
}

// String returns the form in which logs and readyz name an object, for example
// "Deployment.apps default/web (UID 1234)".
func (id identity) String() string {
	return fmt.Sprintf("%s %s (UID %s)", id.kind, path.Join(id.namespace, id.name), id.uid)
}

// ownerIdentity returns the owner that ref names in a dependent of that namespace.
func ownerIdentity(ref metav1.OwnerReference, namespace string) identity {
	kind := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind()
	return identity{kind: kind, namespace: namespace, name: ref.Name, uid: ref.UID}
}

// namedBy reports whether ref names this object, in whatever namespace it is.
func (id identity) namedBy(ref metav1.OwnerReference) bool {
	return id == ownerIdentity(ref, id.namespace)
}

// compareIdentities orders by kind, group, namespace, name and UID. The kind comes first, so that the order of
// kinds does not depend on whether they are namespaced.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/garbagecollector/graph_builder.go, referenceLessThan
func compareIdentities(a, b identity) int {
	return cmp.Or(cmp.Compare(a.kind.Kind, b.kind.Kind), cmp.Compare(a.kind.Group, b.kind.Group),
		cmp.Compare(a.namespace, b.namespace),
		cmp.Compare(a.name, b.name), cmp.Compare(a.uid, b.uid))
}

// object has the parts of an object that the graph needs, as a watch has shown them.
type object struct {
	id         identity
	apiVersion string // the version in which the monitor reads the object
	monitor    int64
	owners     []metav1.OwnerReference
	// deleting means that the object has a deletion timestamp. foreground and orphan mean that it has the finalizer
	// foregroundDeletion or orphan.
	deleting, foreground, orphan bool
}

func objectOf(m *monitor, o metav1.Object) object {
	return object{
		id:         m.identify(o),
		apiVersion: m.kind.GroupVersion().String(),
		monitor:    m.number,
		owners:     o.GetOwnerReferences(),
		deleting:   o.GetDeletionTimestamp() != nil,
		foreground: slices.Contains(o.GetFinalizers(), metav1.FinalizerDeleteDependents),
		orphan:     slices.Contains(o.GetFinalizers(), metav1.FinalizerOrphanDependents),
	}
}

// node is an object in the graph. It is guarded by the graph's lock.
type node struct {
	id identity
	// apiVersion is the version in which the object was last read, and monitor the number of the monitor that read it.
	apiVersion string
	monitor    int64
	// virtual means that the object is named as an owner, but no watch shows it. If no watch ever did, its id is a
	// guess, because dependents may describe the same UID differently.
	virtual bool
	// deleting means that the object is being deleted, which cannot be undone.
	deleting bool
	// deletingDependents means that the object waits until its dependents are deleted. orphaningDependents means that
	// it waits until they no longer refer to it.
	deletingDependents, orphaningDependents bool
	owners                                  []metav1.OwnerReference
	// checks counts the delays that nextCheck has given for a virtual node.
	checks int
	// dependents are the nodes that name this one as an owner.
	// Invariant: each is in the graph, and has an owner reference with this node's UID.
	dependents map[types.UID]*node
}

// sortedDependents returns the dependents in the order of their UIDs, so that results are repeatable.
func (n *node) sortedDependents() []*node {
	list := make([]*node, 0, len(n.dependents))
	for _, uid := range slices.Sorted(maps.Keys(n.dependents)) {
		list = append(list, n.dependents[uid])
	}
	return list
}

// blocks reports whether n keeps its owner with that UID from being deleted in the foreground.
func (n *node) blocks(owner types.UID) bool {
	return slices.ContainsFunc(n.owners,
		func(ref metav1.OwnerReference) bool { return ref.UID == owner && blocking(ref) })
}

func blocking(ref metav1.OwnerReference) bool {
	return ref.BlockOwnerDeletion != nil && *ref.BlockOwnerDeletion
}

// view is a worker's copy of a node.
type view struct {
	id                 identity
	virtual            bool
	deleting           bool
	deletingDependents bool
	dependents         []dependentView // in the order of their UIDs
}

type dependentView struct {
	id                 identity
	deletingDependents bool
	blocks             bool // it blocks the deletion of the node
}

func (n *node) view() view {
	v := view{id: n.id, virtual: n.virtual, deleting: n.deleting, deletingDependents: n.deletingDependents}
	for _, d := range n.sortedDependents() {
		v.dependents = append(v.dependents,
			dependentView{id: d.id, deletingDependents: d.deletingDependents, blocks: d.blocks(n.id.uid)})
	}
	return v
}

// partition divides dependents into those whose references identify the owner correctly, and those that use its UID
// with another identity. A dependent with several references to the UID may be in both.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/garbagecollector/graph_builder.go, partitionDependents
func partition(dependents []*node, owner identity) (matching, others []*node) {
	for _, d := range dependents {
		match, mismatch := false, false
		if owner.namespace != "" && owner.namespace != d.id.namespace {
			mismatch = true // a reference cannot name an owner in another namespace
		} else {
			for _, ref := range d.owners {
				if ref.UID == owner.uid {
					match = match || owner.namedBy(ref)
					mismatch = mismatch || !owner.namedBy(ref)
				}
			}
		}
		if match {
			matching = append(matching, d)
		}
		if mismatch {
			others = append(others, d)
		}
	}
	return matching, others
}

// alternative returns another identity by which dependents name the owner's UID: the one after absent in the order of
// identities, or else the first. Repeated calls go through all of them.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/garbagecollector/graph_builder.go, getAlternateOwnerIdentity
func alternative(dependents []*node, absent identity) (identity, bool) {
	var found []identity
	for _, d := range dependents {
		for _, ref := range d.owners {
			if ref.UID != absent.uid {
				continue
			}
			id := ownerIdentity(ref, d.id.namespace)
			if absent.namespace == "" && id.kind == absent.kind {
				id.namespace = "" // the kind is known to be cluster-scoped
			}
			if id != absent {
				found = append(found, id)
			}
		}
	}
	if len(found) == 0 {
		return identity{}, false
	}
	slices.SortFunc(found, compareIdentities)
	for _, id := range found {
		if compareIdentities(id, absent) > 0 {
			return id, true
		}
	}
	return found[0], true
}
