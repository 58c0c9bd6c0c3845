package multicluster_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
	"weak"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/multicluster"
	"github.com/flyball-dev/flyball/reconcile"
)

// Nothing keeps a departed cluster in memory: neither delayed or failed requests, nor indexes, nor the reconcilers that
// were built for it.
func TestDepartedClusterIsFreed(t *testing.T) {
	w := newWorld(t, multicluster.Options{}, manager.Options{})
	reconciled := make(chan struct{}, 10)
	w.complete(t, multicluster.PerCluster(func(c *multicluster.Cluster,
	) (reconcile.Reconciler[reconcile.Request], error) {
		return reconcile.Func[reconcile.Request](func(ctx context.Context,
			r reconcile.Request,
		) (reconcile.Result, error) {
			var cm corev1.ConfigMap
			if err := c.Get(ctx, r.NamespacedName, &cm); err != nil {
				return reconcile.Result{}, err
			}
			c.Recorder("test").Eventf(&cm, "Normal", "Seen", "it was seen")
			select {
			case reconciled <- struct{}{}:
			default:
			}
			if r.Name == "fails" {
				return reconcile.Result{}, reconcile.Terminal(errors.New("it always does"))
			}
			return reconcile.Result{RequeueAfter: time.Hour}, nil
		}), nil
	}))
	if err := w.IndexField(t.Context(), &corev1.ConfigMap{}, "byName",
		func(o client.Object) []string { return []string{o.GetName()} }); err != nil {
		t.Fatal(err)
	}
	w.start(t)
	s := newSite(t)
	s.create(t, "later", "fails")
	w.join(t, "eu", s)
	<-reconciled
	<-reconciled
	leaveAndWaitUntilFreed(t, w, func() {})
}

// Requests that were queued when a cluster left do not keep it in memory, whether or not their reports fail.
func TestReportsDoNotKeepMemory(t *testing.T) {
	w := newWorld(t, multicluster.Options{ClusterWorkers: 1, ReleaseAfter: -1}, manager.Options{})
	begun, blocked := make(chan struct{}), make(chan struct{})
	var reports atomic.Int32
	r := &recorder{then: func(ctx context.Context, r multicluster.Request) (reconcile.Result, error) {
		if _, ok := multicluster.ClusterFromContext(ctx); ok {
			close(begun)
			<-blocked
			return reconcile.Result{}, errors.New("it departs")
		}
		switch reports.Add(1); r.Name {
		case "fails":
			return reconcile.Result{}, errors.New("it always does")
		case "panics":
			panic("it always does")
		case "senseless":
			return reconcile.Result{}, reconcile.Terminal(errors.New("it always does"))
		}
		return reconcile.Result{RequeueAfter: time.Hour}, nil
	}}
	o := reconcile.Options[multicluster.Request]{Workers: 1, MaxRetries: 2, MinInterval: time.Millisecond}
	if err := multicluster.ControllerManagedBy(w.Manager).For(&corev1.ConfigMap{}).WithOptions(o).ReportGone(
		true,
	).Complete(r); err != nil {
		t.Fatal(err)
	}
	w.start(t)
	s := newSite(t)
	s.create(t, "a", "fails", "later", "panics", "senseless")
	w.join(t, "eu", s)
	<-begun
	leaveAndWaitUntilFreed(t, w, func() {
		for _, err := w.GetCluster(t.Context(), "eu"); !errors.Is(err,
			multicluster.ErrClusterGone); _, err = w.GetCluster(t.Context(), "eu") {
			time.Sleep(time.Millisecond)
		}
		close(blocked)
	})
	for deadline := time.Now().Add(time.Minute); reports.Load() != 3+1+3+1; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d reports", reports.Load())
		}
	}
}

// leaveAndWaitUntilFreed makes the cluster eu leave, calls the function, and waits until the cluster's memory is free.
func leaveAndWaitUntilFreed(t *testing.T, w *world, then func()) {
	t.Helper()
	cluster := func() weak.Pointer[multicluster.Cluster] {
		c, err := w.GetCluster(t.Context(), "eu")
		if err != nil {
			t.Fatal(err)
		}
		return weak.Make(c)
	}()
	w.fleet.Leave("eu")
	then()
	for deadline := time.Now().Add(time.Minute); cluster.Value() != nil; time.Sleep(10 * time.Millisecond) {
		if runtime.GC(); time.Now().After(deadline) {
			t.Fatalf("it is still there; clusters: %q", w.states())
		}
	}
}

// Over sockets, too, a cluster that has left leaves no connection.
func TestNoConnectionIsLeft(t *testing.T) {
	const clusters = 20
	w := newWorld(t, multicluster.Options{}, manager.Options{})
	c := newClusterCounter(clusters)
	w.complete(t, c)
	w.start(t)
	server := newPlainServer(t, nil)
	defer server.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	open := make(chan int, 1) // how many connections there are
	open <- 0
	s := &http.Server{Handler: server.Handler(), ConnState: func(_ net.Conn, state http.ConnState) {
		n := <-open
		switch state {
		case http.StateNew:
			n++
		case http.StateClosed, http.StateHijacked:
			n--
		}
		open <- n
	}}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	for i := range clusters {
		if err := w.fleet.Join(
			multicluster.Announcement{
				Name:   fmt.Sprint("c-", i),
				Config: &rest.Config{Host: "http://" + l.Addr().String()},
			},
		); err != nil {
			t.Fatal(err)
		}
	}
	c.wait(t, time.Minute)
	for i := range clusters {
		w.fleet.Leave(fmt.Sprint("c-", i))
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		n := <-open
		open <- n
		if n == 0 && w.states() == "" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d connections are left; clusters: %q", n, w.states())
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		t.Error(err)
	}
}
