package multicluster_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"testing"
	"time"
	"weak"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/manager/multicluster"
	"github.com/flyball-dev/flyball/reconcile"
)

// Nothing keeps the memory of a cluster that has left: not requests that were to run in an hour, nor those that failed, nor indexes, nor
// reconcilers that were made for it.
func TestTheMemoryOfADepartedClusterIsFree(t *testing.T) {
	w := newWorld(t, multicluster.Options{}, manager.Options{})
	reconciled := make(chan struct{}, 10)
	w.complete(t, multicluster.Each(func(c *multicluster.Cluster) (reconcile.Reconciler[reconcile.Request], error) {
		return reconcile.Func[reconcile.Request](func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
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
	if err := w.IndexField(t.Context(), &corev1.ConfigMap{}, "byName", func(o client.Object) []string { return []string{o.GetName()} }); err != nil {
		t.Fatal(err)
	}
	w.start(t)
	s := newSite(t)
	s.create(t, "later", "fails")
	w.join(t, "eu", s)
	<-reconciled
	<-reconciled
	cluster := func() weak.Pointer[multicluster.Cluster] {
		c, err := w.GetCluster(t.Context(), "eu")
		if err != nil {
			t.Fatal(err)
		}
		return weak.Make(c)
	}()
	w.fleet.Leave("eu")
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
	c := newTally(clusters)
	w.complete(t, c)
	w.start(t)
	server := plain(t, nil)
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
		if err := w.fleet.Join(multicluster.Announcement{Name: fmt.Sprint("c-", i), Config: &rest.Config{Host: "http://" + l.Addr().String()}}); err != nil {
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
