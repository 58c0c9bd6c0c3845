package garbagecollector_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/client/events"
	"github.com/flyball-dev/flyball/controllers/garbagecollector"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/audit"
	"github.com/flyball-dev/flyball/localapi/gate"
)

// cluster is an API server with a collector, in a bubble.
type cluster struct {
	t      *testing.T
	ctx    context.Context
	config *rest.Config
	client kubernetes.Interface
	gc     *garbagecollector.Collector
	log    *audit.Log
	gauges gauges
}

// inCluster runs f in a bubble with a server and a collector that has synced.
func inCluster(t *testing.T, f func(c *cluster)) {
	inClusterBehind(t, gate.Funcs{}, func(*cluster) {}, f)
}

// inClusterBehind is like inCluster, with the gate g in front of the server. It calls before, and then starts the
// collector.
func inClusterBehind(t *testing.T, g gate.Gate, before, f func(c *cluster)) {
	synctest.Test(t, func(t *testing.T) {
		server := localapi.NewTestWith(t, localapi.Options{Gate: g})
		client := kubernetes.NewForConfigOrDie(server.RESTConfig())
		broadcaster, err := events.New(server.RESTConfig(), events.Options{})
		if err != nil {
			t.Fatal(err)
		}
		measured := gauges{}
		made, err := garbagecollector.New(server.RESTConfig(), broadcaster.Recorder(garbagecollector.Component),
			garbagecollector.Options{Metrics: measured})
		if err != nil {
			t.Fatal(err)
		}
		gc := made.(*garbagecollector.Collector)
		ctx, stop := context.WithCancel(t.Context())
		c := &cluster{t, ctx, server.RESTConfig(), client, gc, server.Audit(), measured}
		before(c)
		done := make(chan error, 2)
		go func() { done <- gc.Run(ctx) }()
		go func() { done <- broadcaster.Run(ctx) }()
		synctest.Wait()
		if err := gc.Health(); err != nil {
			t.Errorf("health: %v", err)
		}
		f(c)
		stop()
		for range 2 {
			if err := <-done; err != nil {
				t.Errorf("run: %v", err)
			}
		}
	})
}

// owned creates a ConfigMap with owners. If blocking is true, it blocks their deletion in the foreground.
func (c *cluster) owned(name string, blocking bool, owners ...*corev1.ConfigMap) *corev1.ConfigMap {
	c.t.Helper()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, o := range owners {
		cm.OwnerReferences = append(cm.OwnerReferences, ownerRef(o, blocking))
	}
	return c.create(cm)
}

func ownerRef(o *corev1.ConfigMap, blocking bool) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: "v1", Kind: "ConfigMap", Name: o.Name, UID: o.UID,
		BlockOwnerDeletion: &blocking,
	}
}

func (c *cluster) create(cm *corev1.ConfigMap) *corev1.ConfigMap {
	c.t.Helper()
	if cm.Namespace == "" {
		cm.Namespace = "default"
	}
	created, err := c.client.CoreV1().ConfigMaps(cm.Namespace).Create(c.ctx, cm, metav1.CreateOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return created
}

func (c *cluster) delete(name string, policy metav1.DeletionPropagation) {
	c.t.Helper()
	if err := c.client.CoreV1().ConfigMaps("default").Delete(c.ctx, name,
		metav1.DeleteOptions{PropagationPolicy: &policy}); err != nil {
		c.t.Fatal(err)
	}
}

// settle waits until the collector has finished all work, including retries of verifications.
func (c *cluster) settle() {
	time.Sleep(time.Second)
	synctest.Wait()
}

// left returns the names of the existing ConfigMaps, each with the names of its owners.
func (c *cluster) left(namespace string) []string {
	c.t.Helper()
	list, err := c.client.CoreV1().ConfigMaps(namespace).List(c.ctx, metav1.ListOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	var names []string
	for _, cm := range list.Items {
		name := cm.Name
		for _, ref := range cm.OwnerReferences {
			name += "<" + ref.Name
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (c *cluster) want(names ...string) {
	c.t.Helper()
	c.settle()
	if got := c.left("default"); !slices.Equal(got, names) {
		c.t.Errorf("left %v, want %v", got, names)
	}
}

// Source: k8s.io/kubernetes v1.37.2 test/integration/garbagecollector, TestCascadingDeletion
func TestBackground(t *testing.T) {
	inCluster(t, func(c *cluster) {
		owner, other := c.owned("owner", false), c.owned("other", false)
		child := c.owned("child", true, owner)
		c.owned("grandchild", false, child)
		c.owned("shared", true, owner, other)
		c.owned("free", false)
		c.want("child<owner", "free", "grandchild<child", "other", "owner", "shared<owner<other")
		c.delete("owner", metav1.DeletePropagationBackground)
		c.want("free", "other", "shared<other")
		c.delete("other", metav1.DeletePropagationBackground)
		c.want("free")
		if s := c.gc.Stats(); s.Deleted != 3 || s.Virtual != 0 {
			t.Errorf("stats %+v", s)
		}
	})
}

// Source: k8s.io/kubernetes v1.37.2 test/integration/garbagecollector, TestCreateWithNonExistentOwner
func TestNonexistentOwner(t *testing.T) {
	inCluster(t, func(c *cluster) {
		never := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "never", UID: "no-such"}}
		c.owned("child", false, never)
		impostor := c.owned("right-name", false)
		impostor.UID = "another"
		c.owned("cheated", false, impostor)
		c.want("right-name")
	})
}

// Source: k8s.io/kubernetes v1.37.2 test/integration/garbagecollector, TestSolidOwnerDoesNotBlockWaitingOwner,
// TestNonBlockingOwnerRefDoesNotBlock and TestBlockingOwnerRefDoesBlock
func TestForeground(t *testing.T) {
	inCluster(t, func(c *cluster) {
		owner, other := c.owned("owner", false), c.owned("other", false)
		held := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{
				Name: "held", Finalizers: []string{"test/hold"},
				OwnerReferences: []metav1.OwnerReference{ownerRef(owner, true)},
			},
		}
		c.create(held)
		c.owned("grandchild", true, c.owned("child", true, owner))
		c.owned("shared", true, owner, other)
		c.want("child<owner", "grandchild<child", "held<owner", "other", "owner", "shared<owner<other")
		c.delete("owner", metav1.DeletePropagationForeground)
		c.want("held<owner", "other", "owner", "shared<other") // held has a finalizer, so its owner waits
		patch := []byte(`{"metadata":{"finalizers":null}}`)
		if _, err := c.client.CoreV1().ConfigMaps("default").Patch(c.ctx, "held", types.MergePatchType, patch,
			metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		c.want("other", "shared<other")
	})
}

func TestForegroundWaitsForBlockersOnly(t *testing.T) {
	inCluster(t, func(c *cluster) {
		owner := c.owned("owner", false)
		c.create(
			&corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{
					Name: "held", Finalizers: []string{"test/hold"},
					OwnerReferences: []metav1.OwnerReference{ownerRef(owner, false)},
				},
			},
		)
		c.settle()
		c.delete("owner", metav1.DeletePropagationForeground)
		c.want("held<owner") // its owner is gone, and it is being deleted
	})
}

// Source: k8s.io/kubernetes v1.37.2 test/integration/garbagecollector, TestDoubleDeletionWithFinalizer; the unblocking
// is garbagecollector.go, attemptToDeleteItem
func TestForegroundOfACycle(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.owned("a", false)
		b := c.owned("b", true, a)
		a.OwnerReferences = []metav1.OwnerReference{ownerRef(b, true)}
		if _, err := c.client.CoreV1().ConfigMaps("default").Update(c.ctx, a, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		c.settle()
		c.delete("a", metav1.DeletePropagationForeground)
		c.want()
	})
}

// Source: k8s.io/kubernetes v1.37.2 test/integration/garbagecollector, TestOrphaning
func TestOrphan(t *testing.T) {
	inCluster(t, func(c *cluster) {
		owner, other := c.owned("owner", false), c.owned("other", false)
		for i := range 25 {
			c.owned(fmt.Sprintf("child-%02d", i), true, owner)
		}
		c.owned("shared", true, owner, other)
		c.settle()
		c.delete("owner", metav1.DeletePropagationOrphan)
		c.settle()
		left := c.left("default")
		if len(left) != 27 || left[0] != "child-00" || left[26] != "shared<other" {
			t.Errorf("left %v", left)
		}
		if s := c.gc.Stats(); s.Deleted != 0 {
			t.Errorf("deleted %d", s.Deleted)
		}
	})
}

// Source: k8s.io/kubernetes v1.37.2 test/integration/garbagecollector, TestCrossNamespaceReferencesWithWatchCache
func TestOwnerInAnotherNamespace(t *testing.T) {
	inCluster(t, func(c *cluster) {
		owner := c.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "owner"}})
		c.owned("child", false, owner)
		c.want()
		if got := c.left("kube-system"); len(got) != 1 {
			t.Errorf("left in the other namespace: %v", got)
		}
		list, err := c.client.CoreV1().Events("default").List(c.ctx, metav1.ListOptions{})
		if err != nil || len(list.Items) != 1 {
			t.Fatalf("events %v, %v", list, err)
		}
		e := list.Items[0]
		want := fmt.Sprintf(
			`ownerRef [v1/ConfigMap, namespace: default, name: owner, uid: %s] does not exist in namespace "default"`,
			owner.UID,
		)
		if e.Reason != "OwnerRefInvalidNamespace" || e.Type != "Warning" || e.Message != want ||
			e.Source.Component != "garbage-collector-controller" || e.InvolvedObject.Name != "child" {
			t.Errorf("event %+v", e)
		}
	})
}

// Source: k8s.io/kubernetes v1.37.2 test/integration/garbagecollector, TestClusterScopedOwner
func TestClusterScopedOwner(t *testing.T) {
	inCluster(t, func(c *cluster) {
		node, err := c.client.CoreV1().Nodes().Create(c.ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}},
			metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		c.create(
			&corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{
					Name: "child",
					OwnerReferences: []metav1.OwnerReference{
						{APIVersion: "v1", Kind: "Node", Name: "n", UID: node.UID},
					},
				},
			},
		)
		c.want("child<n")
		if err := c.client.CoreV1().Nodes().Delete(c.ctx, "n", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		c.want()
	})
}

// The collector cannot look for a namespaced owner of a cluster-scoped object, so the object stays.
func TestNamespacedOwnerOfClusterScoped(t *testing.T) {
	inCluster(t, func(c *cluster) {
		owner := c.owned("owner", false)
		_, err := c.client.CoreV1().Nodes().Create(c.ctx,
			&corev1.Node{
				ObjectMeta: metav1.ObjectMeta{
					Name:            "n",
					OwnerReferences: []metav1.OwnerReference{ownerRef(owner, false)},
				},
			}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		c.settle()
		c.delete("owner", metav1.DeletePropagationBackground)
		c.settle()
		if _, err := c.client.CoreV1().Nodes().Get(c.ctx, "n", metav1.GetOptions{}); err != nil {
			t.Errorf("get node: %v", err)
		}
	})
}

// One delete is enough, however many workers and events there are.
func TestDeletesOnce(t *testing.T) {
	inCluster(t, func(c *cluster) {
		owner := c.owned("owner", false)
		c.owned("child", false, owner)
		c.settle()
		c.delete("owner", metav1.DeletePropagationBackground)
		c.want()
		deletes := len(c.log.Entries(func(e audit.Entry) bool { return e.Verb == "delete" && e.Name == "child" }))
		if deletes != 1 {
			t.Errorf("%d deletes of the child", deletes)
		}
	})
}

// The cascade of a Deployment: owners of several kinds, all of which are deleted.
func TestDeploymentCascade(t *testing.T) {
	inCluster(t, func(c *cluster) {
		owner := c.owned("deployment", false)
		rs := c.owned("rs", true, owner)
		for i := range 5 {
			pod := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{
					Name:            fmt.Sprintf("pod-%d", i),
					OwnerReferences: []metav1.OwnerReference{ownerRef(rs, true)},
				},
				Spec: corev1.PodSpec{
					Containers:                    []corev1.Container{{Name: "c", Image: "i"}},
					TerminationGracePeriodSeconds: ptr.To(int64(0)),
				},
			}
			if _, err := c.client.CoreV1().Pods("default").Create(c.ctx, pod, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		c.settle()
		c.delete("deployment", metav1.DeletePropagationForeground)
		c.want()
		pods, err := c.client.CoreV1().Pods("default").List(c.ctx, metav1.ListOptions{})
		if err != nil || len(pods.Items) != 0 {
			t.Errorf("pods %v, %v", pods.Items, err)
		}
	})
}

func TestRunOnce(t *testing.T) {
	inCluster(t, func(c *cluster) {
		if err := c.gc.Run(c.ctx); err == nil {
			t.Error("a second Run is no error")
		}
		if _, err := c.client.CoreV1().ConfigMaps("default").Get(c.ctx, "x",
			metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	})
}
