package main

import (
	"context"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/manifest"
	"github.com/flyball-dev/flyball/examples/operators/ci/api"
	"github.com/flyball-dev/flyball/examples/operators/ci/fleet"
	"github.com/flyball-dev/flyball/examples/operators/internal/optest"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/manager"
)

// The names of the clusters.
const (
	Hub     = "app.ci"
	Build01 = "build01"
	Build02 = "build02"
)

// Cluster is an embedded API server with the operators' kinds, and a client that acts as its users.
type Cluster struct {
	*localapi.Test
	// Client reads from the server, without a cache.
	Client client.Client
}

// World is several clusters and, while it runs, the operators that a test starts. Its client is that of the hub.
type World struct {
	*optest.World
	Clusters map[string]*Cluster

	lives    map[string]*life // by process: the fleets of that name
	counters *counters        // of the fleet that was made last
}

// In runs test in a bubble of virtual time, with the clusters of those names. Watches get one bookmark a day, because
// half a year passes in some tests.
func In(t *testing.T, test func(w *World), names ...string) {
	t.Helper()
	InWithBookmarks(t, 24*time.Hour, test, names...)
}

// InWithBookmarks is In with more frequent bookmarks, for tests that lose answers: the next bookmark tells a cache
// whether a write without an answer was applied.
func InWithBookmarks(t *testing.T, every time.Duration, test func(w *World), names ...string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(newWorld(t, every, names...)) })
}

func newWorld(t *testing.T, bookmarks time.Duration, names ...string) *World {
	t.Helper()
	w := &World{World: optest.NewWorld(t, nil), Clusters: map[string]*Cluster{}, lives: map[string]*life{}}
	for _, name := range names {
		server := localapi.NewTestWith(t, localapi.Options{
			Namespaces:       []string{"ci", "ephemeral-cluster", "ocp", "team"},
			BookmarkInterval: bookmarks,
		})
		c, err := client.New(server.RESTConfig(), client.Options{Scheme: api.NewScheme()})
		w.Must(err)
		w.Must(Define(w.Ctx, c))
		w.Clusters[name] = &Cluster{server, c}
	}
	w.Client = w.Clusters[Hub].Client
	return w
}

// crds is the folder with the definitions of the operators' kinds.
const crds = "api/crds"

// Define creates the operators' kinds in a cluster, unless they exist, and waits until they are served.
func Define(ctx context.Context, c client.Client) error {
	definitions, err := manifest.ReadFiles([]string{crds}, nil)
	if err != nil {
		return err
	}
	return manifest.Install(ctx, c, definitions)
}

// Configs returns the client configurations of the clusters, by name.
func (w *World) Configs() map[string]*rest.Config {
	configs := map[string]*rest.Config{}
	for name, c := range w.Clusters {
		configs[name] = rest.CopyConfig(c.RESTConfig())
	}
	return configs
}

// Seed stores objects in a cluster as they are, for example with an old creation time. Objects of the operators' kinds
// must state their kind.
func (w *World) Seed(cluster string, objects ...runtime.Object) {
	w.Helper()
	for _, o := range objects {
		if _, _, err := clientscheme.Scheme.ObjectKinds(o); err != nil { // a custom resource: stored as it is
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
			w.Must(err)
			o = &unstructured.Unstructured{Object: content}
		}
		w.Must(w.Clusters[cluster].Seed(w.Ctx, o))
	}
}

// Create creates objects, including their status.
func (w *World) Create(cluster string, objects ...client.Object) {
	w.Helper()
	for _, o := range objects {
		w.Must(CreateWithStatus(w.Ctx, w.Clusters[cluster].Client, o))
	}
}

// CreateWithStatus creates obj, and then updates its status, which the server ignores in a create.
func CreateWithStatus(ctx context.Context, c client.Client, obj client.Object) error {
	wanted := obj.DeepCopyObject().(client.Object)
	if err := c.Create(ctx, obj); err != nil {
		return err
	}
	wanted.SetResourceVersion(obj.GetResourceVersion())
	status := reflect.ValueOf(wanted).Elem().FieldByName("Status")
	if _, builtin := obj.(*corev1.Namespace); builtin || !status.IsValid() || status.IsZero() {
		return nil
	}
	return c.Status().Update(ctx, wanted)
}

// Get reads an object from the server.
func Get[T client.Object](w *World, cluster, namespace, name string, obj T) T {
	w.Helper()
	w.Must(w.Clusters[cluster].Client.Get(w.Ctx, client.ObjectKey{Namespace: namespace, Name: name}, obj))
	return obj
}

// Exists reports whether the object is on the server.
func (w *World) Exists(cluster, namespace, name string, obj client.Object) bool {
	w.Helper()
	err := w.Clusters[cluster].Client.Get(w.Ctx, client.ObjectKey{Namespace: namespace, Name: name}, obj)
	w.Must(client.IgnoreNotFound(err))
	return err == nil
}

// Jobs returns the hub's ProwJobs.
func (w *World) Jobs() []api.ProwJob {
	w.Helper()
	var list api.ProwJobList
	w.Must(w.List(w.Ctx, &list))
	return list.Items
}

// Fleet returns the world's clusters as an operator sees them, with caches restricted to those given.
func (w *World) Fleet(caches ...client.CacheOf) *fleet.Fleet {
	w.Helper()
	return w.fleet("operator", manager.Options{Caches: caches})
}

// Candidate returns a fleet that begins when it gets the lease, as the process of that name.
func (w *World) Candidate(process string, caches ...client.CacheOf) *fleet.Fleet {
	w.Helper()
	return w.fleet(process, manager.Options{
		Caches:         caches,
		LeaderElection: manager.LeaderElection{Enabled: true, Namespace: "ci", Name: "lease", Identity: process},
	})
}

func (w *World) fleet(process string, o manager.Options) *fleet.Fleet {
	w.Helper()
	configs := w.Configs()
	w.lives[process] = &life{asked: map[string]int{}}
	for cluster, config := range configs {
		config.UserAgent = process
		config.Wrap(w.lives[process].in(cluster))
	}
	w.counters = newCounters()
	o.GracefulTimeout, o.Metrics = time.Second, w.counters
	f, err := fleet.New(configs, fleet.Options{Hub: Hub, Manager: o})
	w.Must(err)
	return f
}

// Quiet lets time pass, and fails the test for every write that a cluster receives meanwhile.
func (w *World) Quiet(d time.Duration) {
	w.Helper()
	for _, c := range w.Clusters {
		c.Audit().Reset()
	}
	time.Sleep(d)
	for name, c := range w.Clusters {
		for _, e := range c.Audit().Writes() {
			w.Errorf("%s was written to, with nothing to do: %v", name, e)
		}
	}
}

// Writes returns how often the cluster answered verb on the resource with success.
func (w *World) Writes(cluster, verb, resource string) (n int) {
	for _, e := range w.Clusters[cluster].Audit().Writes() {
		if e.Verb == verb && e.Resource == resource && e.Code < 300 {
			n++
		}
	}
	return n
}
