package garbagecollector

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// id parses "Kind namespace/name uid", of the core group; the namespace may be empty.
func id(s string) identity {
	f := strings.Fields(s)
	namespace, name, _ := strings.Cut(f[1], "/")
	return identity{kind: schema.GroupKind{Kind: f[0]}, namespace: namespace, name: name, uid: types.UID(f[2])}
}

// ref returns a reference to an owner; with "!" in front, the reference blocks the owner.
func ref(s string) metav1.OwnerReference {
	blocks := strings.HasPrefix(s, "!")
	owner := id(strings.TrimPrefix(s, "!"))
	r := metav1.OwnerReference{APIVersion: "v1", Kind: owner.kind.Kind, Name: owner.name, UID: owner.uid}
	if blocks {
		r.BlockOwnerDeletion = ptr.To(true)
	}
	return r
}

// obj is an object with owners.
func obj(s string, owners ...string) object {
	o := object{id: id(s)}
	for _, owner := range owners {
		o.owners = append(o.owners, ref(owner))
	}
	return o
}

func deletingObj(finalizer string, s string, owners ...string) object {
	o := obj(s, owners...)
	o.deleting, o.foreground, o.orphan = true, strings.Contains(finalizer, "foreground"),
		strings.Contains(finalizer, "orphan")
	return o
}

// by returns the object as the monitor with that number shows it.
func by(monitor int64, o object) object {
	o.monitor = monitor
	return o
}

// String formats effects like "delete a v:b retry v:c orphan d invalid e->f". It names objects by UID, with "v:" in
// front of the keys of virtual nodes.
func (e effects) String() string {
	var parts []string
	list := func(verb string, keys []key) {
		if len(keys) == 0 {
			return
		}
		parts = append(parts, verb)
		for _, k := range keys {
			parts = append(parts, map[bool]string{true: "v:"}[k.virtual]+string(k.uid))
		}
	}
	list("delete", e.deletes)
	list("retry", e.delayedDeletes)
	for _, uid := range e.orphans {
		parts = append(parts, "orphan "+string(uid))
	}
	for _, s := range e.invalidOwnerRefs {
		parts = append(parts, fmt.Sprintf("invalid %s->%s", s.dependent.uid, s.owner.UID))
	}
	return strings.Join(parts, " ")
}

// String has a word for each node: "uid", or "v:Kind:namespace/name:uid" for a virtual one. The UIDs of its dependents
// follow in parentheses: "(uid,uid)".
func (g *graph) String() string {
	var parts []string
	for _, uid := range slices.Sorted(maps.Keys(g.nodes)) {
		n := g.nodes[uid]
		s := string(uid)
		if n.virtual {
			s = fmt.Sprintf("v:%s:%s/%s:%s", n.id.kind, n.id.namespace, n.id.name, uid)
		}
		if len(n.dependents) > 0 {
			var deps []string
			for _, d := range n.sortedDependents() {
				deps = append(deps, string(d.id.uid))
			}
			s += "(" + strings.Join(deps, ",") + ")"
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, " ")
}

// event is one change of the graph.
type event func(g *graph) effects

func observe(o object) event { return func(g *graph) effects { return g.observe(o) } }
func forget(s string) event  { return func(g *graph) effects { return g.forget(id(s)) } }
func forgetMonitors(monitors ...int64) event {
	return func(g *graph) effects { return g.forgetMonitors(monitors) }
}

func virtualDelete(s string) event { return func(g *graph) effects { return g.virtualDelete(id(s)) } }

// turn is an event, its effects, and the graph after it.
type turn struct {
	do             event
	effects, graph string
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/garbagecollector/graph_builder.go; the cross-namespace and
// wrong-version scenarios are those of garbagecollector_test.go, TestConflictingData
func TestGraph(t *testing.T) {
	const (
		pod1, pod2  = "Pod ns1/pod1 p1", "Pod ns1/pod2 p2"
		pod2in2     = "Pod ns2/pod2 p2"
		node1       = "Node /node1 n1"
		node1in1    = "Node ns1/node1 n1"
		rs, rsGuess = "ReplicaSet ns1/rs r1", "ReplicaSet ns1/other r1"
	)
	tests := []struct {
		name   string
		turns  []turn
		absent []string
	}{
		{"owner first", []turn{
			{observe(obj(rs)), "", "r1"},
			{observe(obj(pod1, rs)), "", "p1 r1(p1)"},
			{observe(obj(pod1, rs)), "", "p1 r1(p1)"},
			{forget(rs), "delete p1", "p1"},
			{forget(pod1), "", ""},
		}, []string{rs}},
		{"dependent first", []turn{
			{observe(obj(pod1, rs)), "delete v:r1", "p1 v:ReplicaSet:ns1/rs:r1(p1)"},
			{observe(obj(rs)), "", "p1 r1(p1)"},
		}, nil},
		{"an owner that never existed", []turn{
			{observe(obj(pod1, rs)), "delete v:r1", "p1 v:ReplicaSet:ns1/rs:r1(p1)"},
			{virtualDelete(rs), "delete p1", "p1"},
		}, []string{rs}},
		{"an owner without dependents is not remembered", []turn{
			{observe(obj(rs)), "", "r1"},
			{forget(rs), "", ""},
		}, nil},
		{"deletes of unknown objects have no effect", []turn{{forget(rs), "", ""}, {virtualDelete(rs), "", ""}}, nil},
		{"references come and go", []turn{
			{observe(obj(rs)), "", "r1"},
			{observe(obj(pod1)), "", "p1 r1"},
			{observe(obj(pod1, "!"+rs)), "", "p1 r1(p1)"},
			{observe(obj(pod1, rs)), "delete r1", "p1 r1(p1)"}, // does not block any more
			{observe(obj(pod1, "!"+rs)), "", "p1 r1(p1)"},
			{observe(obj(pod1)), "delete r1", "p1 r1"},
			{observe(obj(pod1, pod2)), "delete v:p2", "p1 v:Pod:ns1/pod2:p2(p1) r1"},
		}, nil},
		{"foreground", []turn{
			{observe(obj(rs)), "", "r1"},
			{observe(obj(pod1, "!"+rs)), "", "p1 r1(p1)"},
			{observe(obj(pod2, "!"+rs)), "", "p1 p2 r1(p1,p2)"},
			{observe(deletingObj("foreground", rs)), "delete p1 p2 r1", "p1 p2 r1(p1,p2)"},
			{observe(deletingObj("foreground", rs)), "", "p1 p2 r1(p1,p2)"},
			{forget(pod1), "delete r1", "p2 r1(p2)"},
			{observe(deletingObj("", rs)), "", "p2 r1(p2)"}, // nothing waits any more
			{forget(pod2), "", "r1"},
		}, nil},
		{"foreground, seen at once", []turn{{observe(deletingObj("foreground", rs)), "delete r1", "r1"}}, nil},
		{"background", []turn{
			{observe(obj(pod1, rs)), "delete v:r1", "p1 v:ReplicaSet:ns1/rs:r1(p1)"},
			{observe(deletingObj("", rs)), "", "p1 r1(p1)"},
			{forget(rs), "delete p1", "p1"},
		}, []string{rs}},
		{"orphan", []turn{
			{observe(obj(pod1, rs)), "delete v:r1", "p1 v:ReplicaSet:ns1/rs:r1(p1)"},
			{observe(obj(rs)), "", "p1 r1(p1)"},
			{observe(deletingObj("orphan", rs)), "orphan r1", "p1 r1(p1)"},
			{observe(deletingObj("orphan", rs)), "", "p1 r1(p1)"},
		}, nil},
		{"orphan, then foreground", []turn{
			{observe(obj(rs)), "", "r1"},
			{observe(deletingObj("orphan,foreground", rs)), "orphan r1", "r1"},
			{observe(deletingObj("foreground", rs)), "delete r1", "r1"},
		}, nil},
		{"a cluster-scoped owner of a namespaced object", []turn{
			{observe(obj(pod1, node1)), "delete v:n1", "v:Node:ns1/node1:n1(p1) p1"},
			{observe(obj(node1)), "", "n1(p1) p1"},
		}, nil},
		{"an owner in another namespace, dependent first", []turn{
			{observe(obj(pod1, pod2)), "delete v:p2", "p1 v:Pod:ns1/pod2:p2(p1)"},
			{observe(obj(pod2in2)), "delete p1 invalid p1->p2", "p1 p2(p1)"},
			{virtualDelete(pod2), "delete p1", "p1 p2(p1)"}, // does not concern the object that was seen
		}, []string{pod2}},
		{"an owner in another namespace, owner first", []turn{
			{observe(obj(pod2in2)), "", "p2"},
			{observe(obj(pod1, pod2)), "delete p1 invalid p1->p2", "p1 p2(p1)"},
		}, nil},
		{"a namespaced owner of a cluster-scoped object", []turn{
			{observe(obj(node1, pod1)), "delete v:p1", "n1 v:Pod:/pod1:p1(n1)"},
			{observe(obj(pod1)), "delete n1 invalid n1->p1", "n1 p1(n1)"},
		}, nil},
		{"one UID, two names: both are tried", []turn{
			{observe(obj(pod1, rs)), "delete v:r1", "p1 v:ReplicaSet:ns1/rs:r1(p1)"},
			{observe(obj(pod2, rsGuess)), "delete p2", "p1 p2 v:ReplicaSet:ns1/rs:r1(p1,p2)"},
			{virtualDelete(rs), "delete p1 retry v:r1", "p1 p2 v:ReplicaSet:ns1/other:r1(p1,p2)"},
			{virtualDelete(rsGuess), "delete p2 retry v:r1", "p1 p2 v:ReplicaSet:ns1/rs:r1(p1,p2)"},
			{forget(pod1), "", "p2 v:ReplicaSet:ns1/rs:r1(p2)"},
			{virtualDelete(rs), "retry v:r1", "p2 v:ReplicaSet:ns1/other:r1(p2)"},
			{virtualDelete(rsGuess), "delete p2", "p2"},
		}, []string{rs, rsGuess}},
		{"one UID, two names: the right one is seen", []turn{
			{observe(obj(pod1, rsGuess)), "delete v:r1", "p1 v:ReplicaSet:ns1/other:r1(p1)"},
			{observe(obj(pod2, rs)), "delete p2", "p1 p2 v:ReplicaSet:ns1/other:r1(p1,p2)"},
			{observe(obj(rs)), "delete p1", "p1 p2 r1(p1,p2)"},
			{virtualDelete(rsGuess), "delete p1", "p1 p2 r1(p1,p2)"},
		}, []string{rsGuess}},
		{"a wrong kind is corrected, then the reference goes", []turn{
			{observe(obj(pod1, "Wrong ns1/rs r1")), "delete v:r1", "p1 v:Wrong:ns1/rs:r1(p1)"},
			{observe(obj(pod1, rs)), "delete v:r1 p1", "p1 v:ReplicaSet:ns1/rs:r1(p1)"},
			{observe(obj(pod1)), "", "p1"},
		}, nil},
		{"a kind is not watched any more", []turn{
			{observe(obj(rs)), "", "r1"},
			{observe(by(1, obj(pod1, "!"+rs))), "", "p1 r1(p1)"},
			{observe(deletingObj("foreground", rs)), "delete p1 r1", "p1 r1(p1)"},
			{observe(obj(pod2, pod1)), "", "p1(p2) p2 r1(p1)"},
			{forgetMonitors(1, 2), "delete r1 v:p1", "v:Pod:ns1/pod1:p1(p2) p2 r1"},
			{observe(by(3, obj(pod1, "!"+rs))), "", "p1(p2) p2 r1(p1)"},
			{forgetMonitors(1, 2), "", "p1(p2) p2 r1(p1)"},
		}, nil},
		{"a cluster-scoped and a namespaced dependent of a missing owner", []turn{
			{observe(obj(node1, pod1)), "delete v:p1", "n1 v:Pod:/pod1:p1(n1)"},
			{observe(obj(pod2, pod1)), "delete p2", "n1 v:Pod:/pod1:p1(n1,p2) p2"},
			{virtualDelete("Pod /pod1 p1"), "delete n1 p2", "n1 p2"},
		}, []string{"Pod /pod1 p1"}},
		{"a virtual node seen under another namespace", []turn{
			{observe(obj(pod1, node1)), "delete v:n1", "v:Node:ns1/node1:n1(p1) p1"},
			{virtualDelete(node1in1), "delete p1", "p1"},
		}, []string{node1in1}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := newGraph()
			for i, turn := range tt.turns {
				if got := turn.do(g).String(); got != turn.effects {
					t.Fatalf("turn %d: effects %q, want %q", i, got, turn.effects)
				}
				if got := g.String(); got != turn.graph {
					t.Fatalf("turn %d: graph %q, want %q", i, got, turn.graph)
				}
			}
			for _, s := range tt.absent {
				if !g.isAbsent(id(s)) {
					t.Errorf("%s is not known to be absent", s)
				}
			}
			if g.absentOwners.Len() != len(tt.absent) {
				t.Errorf("%d are known to be absent, want %d", g.absentOwners.Len(), len(tt.absent))
			}
		})
	}
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/garbagecollector/garbagecollector_test.go,
// TestGetAlternateOwnerIdentity
func TestAlternative(t *testing.T) {
	dependent := func(namespace string, owners ...string) *node {
		n := &node{id: identity{namespace: namespace}}
		for _, s := range owners {
			n.owners = append(n.owners, ref(s))
		}
		return n
	}
	a, b, c := "K ns/a u", "K ns/b u", "K ns/c u"
	tests := []struct {
		name       string
		dependents []*node
		absent     string
		want       string // empty: none
	}{
		{"no other", []*node{dependent("ns", a)}, a, ""},
		{"another UID", []*node{dependent("ns", "K ns/b v")}, a, ""},
		{"the one that follows", []*node{dependent("ns", c), dependent("ns", b)}, a, b},
		{"in the same dependent", []*node{dependent("ns", a, c)}, b, c},
		{"round again", []*node{dependent("ns", a), dependent("ns", b)}, c, a},
		{"in another namespace", []*node{dependent("ns", a), dependent("zz", a)}, a, "K zz/a u"},
		{"known to be cluster-scoped", []*node{dependent("ns", "K /a u")}, "K /a u", ""},
		{"kinds come first", []*node{dependent("ns", "A ns/z u"), dependent("ns", "Z ns/a u")}, a, "Z ns/a u"},
	}
	for _, tt := range tests {
		got, found := alternative(tt.dependents, id(tt.absent))
		if found != (tt.want != "") || (found && got != id(tt.want)) {
			t.Errorf("%s: %v, %v, want %q", tt.name, got, found, tt.want)
		}
	}
}

func TestNextCheck(t *testing.T) {
	g := newGraph()
	g.observe(obj("Pod ns/p p", "ReplicaSet ns/r r"))
	if a, b, c := g.nextCheck("r"), g.nextCheck("r"), g.nextCheck("r"); a != minCheckDelay || b != 2*a || c != 2*b {
		t.Errorf("checks after %v, %v, %v", a, b, c)
	}
	for range 100 {
		g.nextCheck("r")
	}
	if last := g.nextCheck("r"); last != maxCheckDelay {
		t.Errorf("in the end after %v", last)
	}
	if got := g.nextCheck("unknown"); got != minCheckDelay {
		t.Errorf("unknown: %v", got)
	}
}

func TestIdentityString(t *testing.T) {
	for of, want := range map[string]string{
		"Pod ns1/podname2 poduid2": "Pod ns1/podname2 (UID poduid2)", "Node /n u": "Node n (UID u)",
	} {
		if got := id(of).String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
