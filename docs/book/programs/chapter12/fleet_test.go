package chapter12

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/docs/book/internal/book"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/gate"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/multicluster"
	"github.com/flyball-dev/flyball/reconcile"
)

// A cluster is one of many.
type cluster struct {
	name string
	client.Reader
}

// visit is the first idea for many clusters: a loop over them. Each has half a minute to answer.
func visit(ctx context.Context, clusters []cluster, reconcile func(cluster, object string)) {
	for _, c := range clusters {
		ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
		var maps corev1.ConfigMapList
		if err := c.List(ctx, &maps, client.InNamespace("default")); err == nil {
			for _, object := range maps.Items {
				reconcile(c.name, object.Name)
			}
		}
		cancel()
	}
}

// newCluster returns the server of a cluster with one object "web". A dead one takes connections, and does not answer.
func newCluster(t *testing.T, dead bool) *localapi.Test {
	t.Helper()
	return localapi.NewTestWith(t, localapi.Options{Gate: gate.Funcs{
		OnRequest: func(ctx context.Context, _ *gate.Request) gate.Verdict {
			if !dead {
				return gate.Verdict{}
			}
			<-ctx.Done()
			return gate.Verdict{Action: gate.Drop}
		},
	}}, named2("web"))
}

// provider hands its fleet to the test, which announces clusters.
type provider chan multicluster.Fleet

func (provider) Name() string { return "provider" }

func (provider) Health() error { return nil }

func (p provider) Run(ctx context.Context, fleet multicluster.Fleet) error {
	fleet.Synced()
	p <- fleet
	<-ctx.Done()
	return nil
}

// newFleet runs a fleet of these clusters. The controller calls work for each request.
func newFleet(t *testing.T, work func(ctx context.Context, r multicluster.Request) error) (*multicluster.Manager,
	multicluster.Fleet, func() error,
) {
	t.Helper()
	w := newWorld(t)
	p := make(provider, 1)
	local, err := manager.New(w.RESTConfig(), manager.Options{})
	if err != nil {
		t.Fatal(err)
	}
	fleet, err := multicluster.New(local, multicluster.Options{Providers: []multicluster.Provider{p}})
	if err != nil {
		t.Fatal(err)
	}
	reconciler := func(ctx context.Context, r multicluster.Request) (reconcile.Result, error) {
		if r.Name != "web" {
			return reconcile.Result{}, nil
		}
		return reconcile.Result{}, work(ctx, r)
	}
	if err := multicluster.ControllerManagedBy(fleet).For(&corev1.ConfigMap{}).Complete(
		reconcile.Func[multicluster.Request](reconciler)); err != nil {
		t.Fatal(err)
	}
	stop := w.start(t, local, nil)
	return fleet, <-p, stop
}

func join(t *testing.T, fleet multicluster.Fleet, name, identity string, server *localapi.Test) {
	t.Helper()
	a := multicluster.Announcement{Name: name, Identity: identity, Config: server.RESTConfig()}
	if err := fleet.Join(a); err != nil {
		t.Error(err)
	}
}

// TestChapter12Dead compares a loop over clusters with a fleet. One of the clusters does not answer.
func TestChapter12Dead(t *testing.T) {
	text := ""
	synctest.Test(t, func(t *testing.T) {
		d := newDiary()
		var all []cluster
		for _, name := range []string{"asia", "eu", "us"} {
			m, err := manager.New(newCluster(t, name == "asia").RESTConfig(), manager.Options{})
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, cluster{name, m.GetAPIReader()})
		}
		visit(t.Context(), all, func(cluster, object string) {
			if object == "web" {
				d.note("reconcile %s of %s", object, cluster)
			}
		})
		if took := time.Since(d.began); took < 30*time.Second {
			t.Errorf("the dead cluster cost %v", took)
		}
		text = "a loop over the clusters\n" + d.String()
	})
	synctest.Test(t, func(t *testing.T) {
		d := newDiary()
		fleet, f, stop := newFleet(t, func(_ context.Context, r multicluster.Request) error {
			d.note("reconcile %s", r)
			return nil
		})
		for _, name := range []string{"asia", "eu", "us"} {
			join(t, f, name, "1", newCluster(t, name == "asia"))
			time.Sleep(100 * time.Millisecond) // The order of the lines is that of the clusters.
		}
		time.Sleep(time.Minute)
		for _, c := range fleet.Clusters() {
			d.note("%s", strings.TrimSpace(fmt.Sprintf("%s is %v  %s", c.Name, c.State, c.Reason)))
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
		text += "\na fleet\n" + d.String()
	})
	book.Trace(t, page, text)
}

// TestChapter12Replaced announces another cluster under a known name, while a request of the old one waits.
func TestChapter12Replaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDiary()
		_, f, stop := newFleet(t, func(ctx context.Context, r multicluster.Request) error {
			c, ok := multicluster.ClusterFromContext(ctx)
			if !ok {
				return errors.New("no cluster")
			}
			var web corev1.ConfigMap
			if err := c.Get(ctx, r.NamespacedName, &web); err != nil {
				return err
			}
			d.note("reconcile %s: it is %q", r, web.Data["of"])
			if web.Data["of"] == "the old cluster" {
				return errors.New("not today")
			}
			return nil
		})
		servers := map[string]*localapi.Test{}
		for _, of := range []string{"the old cluster", "the new cluster"} {
			web := named2("web")
			web.Data = map[string]string{"of": of}
			servers[of] = localapi.NewTest(t, web)
		}
		join(t, f, "eu", "1", servers["the old cluster"])
		time.Sleep(10 * time.Millisecond)
		d.note("eu is announced anew, with another identity")
		join(t, f, "eu", "2", servers["the new cluster"])
		time.Sleep(time.Hour)
		if err := stop(); err != nil {
			t.Error(err)
		}
		book.Trace(t, page, fmt.Sprint(d))
	})
}
