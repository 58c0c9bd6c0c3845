package replicaset

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2/ktesting"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/workqueue"
)

// keys is an Enqueuer that records the keys it is given.
type keys []string

func (k *keys) Add(r reconcile.Request) { *k = append(*k, r.String()) }
func (k *keys) AddAfter(r reconcile.Request, d time.Duration) {
	*k = append(*k, fmt.Sprintf("%s after %s", r, d))
}
func (k *keys) AddRateLimited(r reconcile.Request) { *k = append(*k, r.String()+" rate limited") }

func (k *keys) AddWith(r reconcile.Request, _ workqueue.AddOptions) { k.Add(r) }

func named(name string, labels map[string]string) *appsv1.ReplicaSet {
	return newSet(1, func(s *appsv1.ReplicaSet) {
		s.Name, s.UID = name, types.UID(name+"-uid")
		s.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	})
}

// The sets of the router's tests: web takes app=web, db takes app=db and waits 30 s; broken and greedy must take
// nothing.
var (
	webSet    = named("web", map[string]string{"app": "web"})
	dbSet     = named("db", map[string]string{"app": "db"})
	brokenSet = named("broken", map[string]string{"app": "not/a/valid value"})
	greedySet = named("greedy", nil)
	foreign   = named("foreign", map[string]string{"app": "web"})
)

func testRouter() router {
	dbSet.Spec.MinReadySeconds = 30
	foreign.Namespace = "elsewhere"
	return newRouter(newCache(webSet, dbSet, brokenSet, greedySet, foreign))
}

func owned(ref metav1.OwnerReference) podOption {
	return func(p *corev1.Pod) { p.OwnerReferences = []metav1.OwnerReference{ref} }
}

func refTo(set *appsv1.ReplicaSet) metav1.OwnerReference { return *metav1.NewControllerRef(set, kind) }

func rv(version string) podOption { return func(p *corev1.Pod) { p.ResourceVersion = version } }

// The sources of the rules are with the groups of rows.
func TestPodEvents(t *testing.T) {
	add := func(options ...podOption) func(podEvent, *keys) {
		return func(h podEvent, q *keys) { h.OnAdd(t.Context(), newPod("p", options...), false, q) }
	}
	update := func(old, new []podOption) func(podEvent, *keys) {
		return func(h podEvent, q *keys) {
			h.OnUpdate(t.Context(), newPod("p", append(old, rv("1"))...), newPod("p", append(new, rv("2"))...), q)
		}
	}
	remove := func(options ...podOption) func(podEvent, *keys) {
		return func(h podEvent, q *keys) {
			h.OnDelete(t.Context(), informer.Deleted[*corev1.Pod]{Object: newPod("p", options...)}, q)
		}
	}
	web, db, orphan := owned(refTo(webSet)), owned(refTo(dbSet)), labelled("app", "web")
	successor, otherKind, notController := refTo(webSet), refTo(webSet), refTo(webSet)
	successor.UID = "earlier"
	otherKind.Kind = "StatefulSet"
	notController.Controller = nil
	type o = []podOption

	tests := []struct {
		name  string
		event func(podEvent, *keys)
		want  keys
	}{
		// Source: k8s.io/kubernetes v1.37.2 pkg/controller/replicaset/replica_set.go, addPod and resolveControllerRef
		{"added: its owner", add(web), keys{"ns/web"}},
		{"added: its owner, whoever selects it", add(db, labelled("app", "web")), keys{"ns/db"}},
		{"added: owner of another kind", add(owned(otherKind)), nil},
		{"added: owner of an earlier life", add(owned(successor)), nil},
		{"added: owner unknown", add(owned(refTo(named("gone", nil)))), nil},
		{"added, orphan: who selects it in its namespace", add(orphan), keys{"ns/web"}},
		{"added, orphan of an owner that does not control it", add(owned(notController)), keys{"ns/web"}},
		{"added, orphan nobody selects", add(labelled("app", "x")), nil},
		{"added, orphan without labels", add(labelled()), nil},
		{"added while being deleted: as if deleted", add(web, deleting), keys{"ns/web"}},
		{"added while being deleted, orphan: nobody", add(orphan, deleting), nil},
		// Source: k8s.io/kubernetes v1.37.2 pkg/controller/replicaset/replica_set.go, deletePod
		{"deleted: its owner", remove(web), keys{"ns/web"}},
		{"deleted, orphan: nobody", remove(orphan), nil},
		// Source: k8s.io/kubernetes v1.37.2 pkg/controller/replicaset/replica_set.go, updatePod
		{"updated: its owner", update(o{web}, o{web}), keys{"ns/web"}},
		{"moved: the old owner and the new", update(o{web}, o{db}), keys{"ns/web", "ns/db"}},
		{
			"released, still selected: the old owner and all who match", update(o{db}, o{orphan}),
			keys{"ns/db", "ns/web"},
		},
		{"released, not selected: the old owner", update(o{web}, o{labelled("app", "x")}), keys{"ns/web"}},
		{"adopted: the new owner", update(o{orphan}, o{web}), keys{"ns/web"}},
		{
			"orphan relabelled: who selects it now", update(o{labelled("app", "x")}, o{labelled("app", "db")}),
			keys{"ns/db"},
		},
		{"orphan changed otherwise: nobody", update(o{orphan}, o{orphan, notReady}), nil},
		{"now being deleted: its owner", update(o{web}, o{web, deleting}), keys{"ns/web"}},
		{
			"now being deleted and relabelled: the owners of both states",
			update(o{web}, o{db, deleting, labelled("app", "x")}),
			keys{"ns/db", "ns/web"},
		},
		{"now being deleted, not relabelled: the present owner only", update(o{web}, o{db, deleting}), keys{"ns/db"}},
		{"deletion of an orphan: nobody", update(o{orphan}, o{orphan, deleting}), nil},
		{
			"became ready: again when it may be available", update(o{db, notReady}, o{db}),
			keys{"ns/db", "ns/db after 30s"},
		},
		{"became ready, nothing to wait for", update(o{web, notReady}, o{web}), keys{"ns/web"}},
		{"stays ready", update(o{db}, o{db}), keys{"ns/db"}},
		{"no longer ready", update(o{db}, o{db, notReady}), keys{"ns/db"}},
		{"replaced by a namesake: both owners", update(o{web}, o{db, uid("another")}), keys{"ns/web", "ns/db"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got keys
			tt.event(testRouter().podEvents(), &got)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("keys (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("a resync is nothing new", func(t *testing.T) {
		var got keys
		pod := newPod("p", web)
		testRouter().podEvents().OnUpdate(t.Context(), pod, pod, &got)
		if got != nil {
			t.Errorf("keys = %v", got)
		}
	})
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/replicaset/replica_set.go, getPodReplicaSets
// (TestPodControllerLookup)
func TestOrphanOfSeveralSetsWakesAll(t *testing.T) {
	other := named("web2", map[string]string{"app": "web"})
	var got keys
	w := newRouter(newCache(webSet, other))
	_, ctx := ktesting.NewTestContext(t)
	w.podEvents().OnAdd(ctx, newPod("p"), false, &got)
	if len(got) != 2 || got[0] == got[1] {
		t.Errorf("keys = %v, want both sets", got)
	}
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/replicaset/replica_set.go, addRS, updateRS and deleteRS
func TestSetEvents(t *testing.T) {
	var got keys
	h := testRouter().setEvents()
	h.OnAdd(t.Context(), webSet, true, &got)
	h.OnUpdate(t.Context(), webSet, webSet, &got) // a resync too
	h.OnDelete(t.Context(), informer.Deleted[*appsv1.ReplicaSet]{Object: webSet}, &got)
	if diff := cmp.Diff(keys{"ns/web", "ns/web", "ns/web"}, got); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
}

// As upstream, the router ignores the group of the owner reference, but not its kind.
func TestKind(t *testing.T) {
	if want := (schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "ReplicaSet"}); kind != want {
		t.Errorf("kind = %v, want %v", kind, want)
	}
}
