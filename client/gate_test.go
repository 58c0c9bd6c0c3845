package client

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/informer"
)

// shown is an informer's cache that holds these objects and has come that far.
type shown[T Object] struct {
	informer.Informer[T]
	at      string
	objects []T
}

func (s *shown[T]) NamespaceResourceVersion(string) string { return s.at }
func (s *shown[T]) History(string) int64                   { return 0 }

func (s *shown[T]) Get(namespace, name string) (obj T, found bool) {
	for _, o := range s.objects {
		if o.GetNamespace() == namespace && o.GetName() == name {
			return o, true
		}
	}
	return obj, false
}

// pod returns a pod with a UID of its own, unless uid says another, at a version.
func pod(name, uid, version string) *corev1.Pod {
	if uid == "" {
		uid = name
	}
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(uid), ResourceVersion: version}}
}

func dying(p *corev1.Pod) *corev1.Pod {
	p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	return p
}

var theOwner = &metav1.ObjectMeta{Namespace: "ns", Name: "owner", UID: "owner"}

// gates is a gate before a cache of pods and one of the owners' own kind.
type gates struct {
	*Gate
	pods, owners       *GatedCache
	podCache, setCache *shown[*corev1.Pod]
}

func newGates(podsAt, ownersAt string, held ...*corev1.Pod) *gates {
	g := &gates{Gate: NewGate(GateOptions{}), podCache: &shown[*corev1.Pod]{at: podsAt, objects: held}, setCache: &shown[*corev1.Pod]{at: ownersAt}}
	g.pods, g.owners = Gated(g.Gate, corev1.Resource("pods"), g.podCache), Gated(g.Gate, corev1.Resource("owners"), g.setCache)
	return g
}

// Source: k8s.io/kubernetes v1.37.1 pkg/controller/util/consistency/consistency.go, EnsureReady and WroteAt
func TestGateReached(t *testing.T) {
	type g = *gates
	wrote := func(version string) func(g) {
		return func(g g) { g.pods.Wrote(context.Background(), theOwner, pod("p", "", version)) }
	}
	for name, c := range map[string]struct {
		at         string // where the caches are when it is written
		write      func(g)
		pods, sets string // where they are when asked
		want       string // the resource whose cache is behind; "" for none
	}{
		"nothing written":             {"5", func(g) {}, "5", "5", ""},
		"pod not seen yet":            {"5", wrote("10"), "9", "99", "pods"},
		"pod seen":                    {"5", wrote("10"), "10", "5", ""},
		"set not seen yet":            {"5", func(g g) { g.owners.Wrote(context.Background(), theOwner, pod("owner", "", "10")) }, "99", "9", "owners"},
		"set seen":                    {"5", func(g g) { g.owners.Wrote(context.Background(), theOwner, pod("owner", "", "10")) }, "5", "11", ""},
		"versions compare as numbers": {"5", wrote("10"), "9", "9", "pods"},
		"the newest write counts":     {"5", func(g g) { wrote("10")(g); wrote("12")(g); wrote("11")(g) }, "11", "5", "pods"},
		"versions that do not compare hold nothing up": {"5", wrote("abc"), "9", "5", ""},
		"nor do watermarks that do not":                {"5", wrote("10"), "abc", "5", ""},
		"a cache without a watermark":                  {"", wrote("10"), "", "", ""},
		"an answer without a version":                  {"5", wrote(""), "5", "5", ""},
		"a comparable one after one that is not":       {"5", func(g g) { wrote("abc")(g); wrote("10")(g) }, "9", "5", "pods"},
		"the server's history went back":               {"9", wrote("10"), "3", "5", ""},
		"another owner of the name": {"5", func(g g) {
			wrote("10")(g)
			g.Hold(&metav1.ObjectMeta{Namespace: "ns", Name: "owner", UID: "another"})
		}, "9", "5", ""},
		"forgotten": {"5", func(g g) { wrote("10")(g); g.Forget(ObjectKey{Namespace: "ns", Name: "owner"}) }, "9", "5", ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGates(c.at, c.at)
			c.write(g)
			g.podCache.at, g.setCache.at = c.pods, c.sets
			var stale *StaleError
			if err := g.Reached(theOwner); errors.As(err, &stale) != (c.want != "") || stale != nil && stale.Resource != c.want {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// Rows with versions "a" and "b" are those of a server whose versions do not compare: there each object has to be seen.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/controller/controller_utils.go, ControllerExpectations and
// UIDTrackingControllerExpectations
func TestGateReady(t *testing.T) {
	one, two := pod("one", "", "a"), pod("two", "", "b")
	type list = []*corev1.Pod
	for name, c := range map[string]struct {
		created, deleted, held list
		at                     string
		after                  time.Duration
		want                   bool
	}{
		"nothing written":                               {nil, nil, nil, "x", 0, true},
		"created, not seen":                             {list{one, two}, nil, list{one}, "x", 0, false},
		"created, all seen":                             {list{one, two}, nil, list{one, two}, "x", 0, true},
		"created, another of the name is there":         {list{one}, nil, list{pod("one", "another", "a")}, "x", 0, false},
		"created, seen when on its way out":             {list{one}, nil, list{dying(pod("one", "", "a"))}, "x", 0, true},
		"created, come and gone: the version tells":     {list{pod("one", "", "10")}, nil, nil, "10", 0, true},
		"created, the version is not reached":           {list{pod("one", "", "10")}, nil, nil, "9", 0, false},
		"deleted, still there":                          {nil, list{one, two}, list{one}, "x", 0, false},
		"deleted, on their way out or gone":             {nil, list{one, two}, list{dying(pod("one", "", "a"))}, "x", 0, true},
		"deleted, another has the name":                 {nil, list{one}, list{pod("one", "another", "a")}, "x", 0, true},
		"after five minutes still waiting":              {nil, list{one}, list{one}, "x", defaultOpenAfter, false},
		"after more than that the cache is believed":    {nil, list{one}, list{one}, "x", defaultOpenAfter + 1, true},
		"created, lost: the same":                       {list{one}, nil, nil, "x", defaultOpenAfter + 1, true},
		"a version that is not reached is waited for":   {list{pod("one", "", "10")}, nil, nil, "9", 24 * time.Hour, false},
		"created, come and gone before it was noted":    {list{pod("one", "", "3")}, nil, nil, "5", 0, true},
		"an update: the cache holds it in what form so": {list{pod("one", "", "b")}, nil, list{one}, "x", 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGates("5", "5")
				for _, p := range c.created {
					g.pods.Wrote(context.Background(), theOwner, p)
				}
				for _, p := range c.deleted {
					g.pods.Deleted(theOwner, p)
				}
				g.podCache.at, g.podCache.objects = c.at, c.held
				time.Sleep(c.after)
				ctx := klog.NewContext(t.Context(), klog.Logger{})
				if err := g.Ready(ctx, theOwner); (err == nil) != c.want || err != nil && !errors.Is(err, ErrStale) {
					t.Errorf("got %v, want ready %v", err, c.want)
				}
				if left := g.Len() > 0; left == c.want {
					t.Errorf("something is noted: %v", left)
				}
			})
		})
	}
}

// What has been seen once need not be seen again: an object that was created, seen and deleted by somebody.
func TestGateRemembersWhatWasSeen(t *testing.T) {
	one, two := pod("one", "", "a"), pod("two", "", "b")
	g := newGates("x", "x")
	g.pods.Wrote(context.Background(), theOwner, one)
	g.pods.Wrote(context.Background(), theOwner, two)
	g.podCache.objects = []*corev1.Pod{one}
	if g.Ready(t.Context(), theOwner) == nil {
		t.Error("ready although two was not seen")
	}
	g.podCache.objects = []*corev1.Pod{two}
	if err := g.Ready(t.Context(), theOwner); err != nil {
		t.Errorf("not ready although both have been seen: %v", err)
	}
}

// A refusal holds for its time, and then ends.
func TestGateHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGates("5", "5")
		g.Hold(theOwner)
		time.Sleep(defaultOpenAfter)
		if g.Ready(t.Context(), theOwner) == nil || g.Reached(theOwner) != nil {
			t.Error("ready: the next try would be refused again")
		}
		time.Sleep(time.Nanosecond)
		if err := g.Ready(t.Context(), theOwner); err != nil || g.Len() != 0 {
			t.Errorf("never ready: %v", err)
		}
	})
}

// Owners of one name, one after the other, do not wait for each other's writes.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/controller/replicaset/replica_set_test.go, TestExpectationsOnRecreate
func TestGateKeepsOwnersOfOneNameApart(t *testing.T) {
	g := newGates("1", "1")
	recreated := &metav1.ObjectMeta{Namespace: "ns", Name: "owner", UID: "other"}
	g.pods.Wrote(context.Background(), theOwner, pod("one", "", "10"))
	if g.Reached(theOwner) == nil || g.Reached(recreated) != nil {
		t.Error("the new owner waits for what was written for the old, or the old does not")
	}
	g.owners.Wrote(context.Background(), recreated, pod("owner", "other", "5"))
	if g.Reached(theOwner) != nil || g.Reached(recreated) == nil || g.Len() != 1 {
		t.Error("what was noted of the old owner is not void")
	}
}
