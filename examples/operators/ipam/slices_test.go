package main

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/conditions"
	"github.com/flyball-dev/flyball/client/controllerutil"
	"github.com/flyball-dev/flyball/examples/operators/ipam/controller"
	"github.com/flyball-dev/flyball/examples/operators/ipam/v1alpha1"
)

// Nodes get slices in the order of their names. A node that goes leaves its slice to the next one that comes.
func slicesAssigned(w *World) {
	w.Node("c", "a", "b")
	w.Network("nad", config("net", "10.0.0.0/24", "/26"))
	pool := w.Sliced("net", controller.ReasonPoolCreated, "a=10.0.0.0/26", "b=10.0.0.64/26", "c=10.0.0.128/26")
	if owner := metav1.GetControllerOf(&pool); owner == nil || owner.Name != "nad" || pool.Status.TotalSlices != 4 ||
		pool.Status.FreeSlices != 1 {
		w.Errorf("pool %+v", pool)
	}
	w.Event("net", "Normal", "Created")
	w.Idle()
	w.NoNode("b")
	w.Sliced("net", controller.ReasonReconciled, "a=10.0.0.0/26", "c=10.0.0.128/26")
	w.Node("d")
	w.Sliced("net", controller.ReasonReconciled, "a=10.0.0.0/26", "d=10.0.0.64/26", "c=10.0.0.128/26")
	w.Idle()
}

// If there are more nodes than slices, there is one condition and one event. The condition ends when a node goes.
func slicesFull(w *World) {
	w.Node("a", "b", "c", "d", "e", "f")
	w.Network("nad", config("net", "10.0.0.0/24", "26"))
	assigned := []string{"a=10.0.0.0/26", "b=10.0.0.64/26", "c=10.0.0.128/26", "d=10.0.0.192/26"}
	pool := w.Sliced("net", controller.ReasonPoolFull, assigned...)
	c := conditions.Get(pool.Status.Conditions, conditions.Stalled)
	if c.Status != metav1.ConditionTrue || c.Message != "no slice is free for 2 of 6 nodes: e, f" {
		w.Errorf("condition %+v", c)
	}
	w.Event("net", "Warning", controller.ReasonPoolFull)
	w.Idle()
	w.NoNode("f")
	w.NoNode("a")
	assigned[0] = "e=10.0.0.0/26"
	pool = w.Sliced("net", controller.ReasonReconciled, assigned...)
	if !conditions.Is(pool.Status.Conditions, conditions.Stalled, "False") {
		w.Errorf("conditions %+v", pool.Status.Conditions)
	}
}

// If a definition changes, the range is cut again.
func slicesResliced(w *World) {
	w.Node("a", "b")
	w.Network("nad", config("net", "10.0.0.0/24", "26"))
	w.Sliced("net", controller.ReasonReconciled, "a=10.0.0.0/26", "b=10.0.0.64/26")
	w.Network("nad", config("net", "10.1.0.0/24", "25"))
	w.Sliced("net", controller.ReasonPoolUpdated, "a=10.1.0.0/25", "b=10.1.0.128/25")
	w.Event("net", "Normal", "SpecUpdated")
	w.Network("nad", config("net", "10.1.0.0/23", "25")) // the range grows: every node keeps its slice
	w.Sliced("net", controller.ReasonReconciled, "a=10.1.0.0/25", "b=10.1.0.128/25")
	w.Idle()
}

// Two definitions of one network own its pool together, as long as they agree.
func slicesTwoDefinitions(w *World) {
	w.Node("a")
	w.Network("nad1", config("net", "10.0.0.0/24", "26"))
	w.Sliced("net", controller.ReasonReconciled, "a=10.0.0.0/26")
	w.Network("nad2", config("net", "10.0.0.0/24", "/26"))
	w.Eventually(func() string {
		var pool v1alpha1.NodeSlicePool
		err := w.Get(w.Ctx, w.key("net"), &pool)
		if err != nil || len(pool.OwnerReferences) != 2 || metav1.GetControllerOf(&pool).Name != "nad1" {
			return fmt.Sprintf("%v, owners %+v", err, pool.OwnerReferences)
		}
		return ""
	})
	w.Network("nad2", config("net", "10.0.0.0/24", "27"))
	pool := w.Sliced("net", controller.ReasonMismatch, "a=10.0.0.0/26")
	if !conditions.Is(pool.Status.Conditions, conditions.Stalled, "True") || pool.Spec.SliceSize != "26" {
		w.Errorf("pool %+v", pool)
	}
	w.Event("net", "Warning", controller.ReasonMismatch)
	w.Idle()
	w.Network("nad1", config("net", "10.0.0.0/24", "27"))
	w.Sliced("net", controller.ReasonReconciled, "a=10.0.0.0/27")
}

// The plugin may be any one of a list; the network's name is then that of the list.
func slicesInAList(w *World) {
	w.Node("a")
	w.Network("nad", `{"cniVersion":"0.3.1","name":"list","plugins":[{"type":"tuning","ipam":{"type":"static"}},
		{"type":"macvlan","ipam":{"type":"whereabouts","range":"fd00::/120","node_slice_size":"/124"}}]}`)
	w.Sliced("list", controller.ReasonReconciled, "a=fd00::/124")
	for _, none := range []string{
		"", `{"ipam":{"type":"host-local"}}`,
		`{"name":"x","ipam":{"type":"whereabouts","range":"10.0.0.0/24"}}`,
	} {
		w.Network("not-sliced", none)
	}
	w.Idle()
	var list v1alpha1.NodeSlicePoolList
	if w.Must(w.List(w.Ctx, &list, client.InNamespace(w.NS))); len(list.Items) != 1 {
		w.Errorf("%d pools", len(list.Items))
	}
}

// No other node gets the slice of a node that is gone while its addresses are in use.
func slicesInUse(w *World) {
	w.Node("a", "b")
	w.Running("p1")
	w.Network("nad", config("net", "10.0.0.0/25", "26"))
	assigned := []string{"a=10.0.0.0/26", "b=10.0.0.64/26"}
	w.Sliced("net", controller.ReasonReconciled, assigned...)
	w.Pool(v1alpha1.PoolName("net", "10.0.0.0/26", "a"), "10.0.0.0/26", map[string]string{"1": "p1"})
	w.Kept("net-10.0.0.0-26-a", controller.ReasonReconciled, "1")
	w.NoNode("a")
	w.Node("c")
	pool := w.Sliced("net", controller.ReasonReconciling, assigned...)
	if c := conditions.Get(pool.Status.Conditions, conditions.Reconciling); c.Status != metav1.ConditionTrue {
		w.Errorf("condition %+v", c)
	}
	w.Idle()
	w.Gone("p1") // the allocation goes with it, and so does the claim to the slice
	w.Sliced("net", controller.ReasonReconciled, "c=10.0.0.0/26", assigned[1])
}

// A lost NodeSlicePool is restored as far as addresses are in use.
func slicesFoundAgain(w *World) {
	w.Node("b", "c")
	w.Running("p1", "p2")
	w.Network("nad", config("net", "10.0.0.0/24", "26"))
	w.Sliced("net", controller.ReasonReconciled, "b=10.0.0.0/26", "c=10.0.0.64/26")
	w.Pool(v1alpha1.PoolName("net", "10.0.0.64/26", "c"), "10.0.0.64/26", map[string]string{"1": "p1"})
	w.Pool(v1alpha1.PoolName("net", "10.0.0.0/26", "gone"), "10.0.0.0/26", map[string]string{"1": "p2"})
	w.Node("a")
	w.settle()
	w.Must(w.Delete(w.Ctx, &v1alpha1.NodeSlicePool{ObjectMeta: metav1.ObjectMeta{Namespace: w.NS, Name: "net"}}))
	w.Sliced("net", controller.ReasonReconciled, "gone=10.0.0.0/26", "c=10.0.0.64/26", "a=10.0.0.128/26",
		"b=10.0.0.192/26")
	w.Idle()
}

// A malformed definition is reported, and its pool stays as it is.
func slicesBadInput(w *World) {
	w.Node("a")
	w.Network("nad", config("net", "10.0.0.0/24", "26"))
	w.Sliced("net", controller.ReasonReconciled, "a=10.0.0.0/26")
	w.Network("nad", `{"ipam": {`)
	pool := w.Sliced("net", controller.ReasonInvalidConfig, "a=10.0.0.0/26")
	if !conditions.Is(pool.Status.Conditions, conditions.Stalled, "True") {
		w.Errorf("conditions %+v", pool.Status.Conditions)
	}
	w.Event("nad", "Warning", controller.ReasonInvalidConfig)
	w.Network("nad", config("net", "10.0.0.1/24", "26"))
	w.Sliced("net", controller.ReasonInvalidRange, "a=10.0.0.0/26")
	w.Network("nad", config("other", "10.0.0.0/24", "26")) // it leaves the network
	w.Sliced("net", controller.ReasonNetworkGone, "a=10.0.0.0/26")
	w.Sliced("other", controller.ReasonReconciled, "a=10.0.0.0/26")
	for i, bad := range []string{
		config("n1", "10.0.0.0/8", "26"), config("n2", "10.0.0.0/24", "8"),
		config("n3", "nonsense", "26"), config("No Name", "10.0.0.0/24", "26"),
	} {
		w.Network(fmt.Sprint("bad", i), bad)
		w.Event(fmt.Sprint("bad", i), "Warning", controller.ReasonInvalidConfig)
	}
	w.Network("nad", config("net", "10.0.0.0/24", "/26"))
	w.Sliced("net", controller.ReasonReconciled, "a=10.0.0.0/26")
	w.Idle()
	if err := w.Get(w.Ctx, w.key("n1"), &v1alpha1.NodeSlicePool{}); !apierrors.IsNotFound(err) {
		w.Errorf("a pool of too many slices: %v", err)
	}
}

// The operator ignores updates of a node's status.
func slicesNodeUpdates(w *World) {
	w.Node("a")
	w.Network("nad", config("net", "10.0.0.0/24", "26"))
	w.Sliced("net", controller.ReasonReconciled, "a=10.0.0.0/26")
	w.settle()
	for range 5 {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
		w.Must(controllerutil.RetryOnConflict(w.Ctx, w, node, func() error {
			metav1.SetMetaDataAnnotation(&node.ObjectMeta, "beat", time.Now().String())
			return nil
		}))
	}
	w.Idle()
}
