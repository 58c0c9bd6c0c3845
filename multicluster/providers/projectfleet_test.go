package providers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/multicluster"
	"github.com/flyball-dev/flyball/reconcile"
)

// planes are the control planes to which the API server of the Projects forwards requests.
type planes struct {
	mu      sync.Mutex
	servers map[string]*localapi.Server // nil: requests are not answered
}

const pathBefore, pathAfter = "/apis/resourcemanager.miloapis.com/v1alpha1/projects/", "/control-plane"

func (p *planes) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		rest, found := strings.CutPrefix(r.URL.Path, pathBefore)
		name, path, below := strings.Cut(rest, pathAfter)
		if !found || !below {
			return next.RoundTrip(r)
		}
		p.mu.Lock()
		server, known := p.servers[name]
		p.mu.Unlock()
		switch {
		case !known:
			return nil, fmt.Errorf("there is no control plane of %q", name)
		case server == nil:
			<-r.Context().Done()
			return nil, r.Context().Err()
		}
		clone := r.Clone(r.Context())
		clone.URL = &url.URL{Scheme: "http", Host: "plane", Path: path, RawQuery: r.URL.RawQuery}
		return server.RESTConfig().Transport.RoundTrip(clone)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// fleet is a server with Projects, their control planes, and a fleet of these control planes with a controller for
// ConfigMaps.
type fleet struct {
	*multicluster.Manager
	t      *testing.T
	ctx    context.Context
	core   client.Client
	planes *planes

	mu       sync.Mutex
	requests []string
}

// inFleet runs test in a bubble. If setup is not nil, it runs before the fleet starts.
func inFleet(t *testing.T, o ProjectOptions, setup func(f *fleet), test func(f *fleet)) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
		f := &fleet{t: t, ctx: ctx, planes: &planes{servers: map[string]*localapi.Server{}}}
		api := localapi.NewTest(t)
		var err error
		f.core, err = client.New(api.RESTConfig(), client.Options{})
		f.must(err)
		f.must(f.core.Create(ctx, definition(External(), "projects", "Cluster")))
		config := api.RESTConfig()
		config.Wrap(f.planes.wrap)
		local, err := manager.New(config, manager.Options{})
		f.must(err)
		provider, err := NewProjects(local, o)
		f.must(err)
		f.Manager, err = multicluster.New(local, multicluster.Options{Providers: []multicluster.Provider{provider}})
		f.must(err)
		if setup != nil {
			setup(f)
		}
		f.must(
			multicluster.ControllerManagedBy(f.Manager).For(&corev1.ConfigMap{}).Complete(
				reconcile.Func[multicluster.Request](f.reconcile),
			),
		)
		done := make(chan error)
		go func() { done <- local.Run(ctx) }()
		f.settle()
		test(f)
		cancel()
		f.must(<-done)
		for _, server := range f.planes.servers {
			if server != nil {
				f.must(server.Close())
			}
		}
	})
}

// reconcile writes the cluster's name into the requested ConfigMap in that cluster.
func (f *fleet) reconcile(ctx context.Context, r multicluster.Request) (reconcile.Result, error) {
	f.mu.Lock()
	f.requests = append(f.requests, r.String())
	f.mu.Unlock()
	c, ok := multicluster.ClusterFromContext(ctx)
	if !ok {
		return reconcile.Result{}, errors.New("there is no cluster")
	}
	var m corev1.ConfigMap
	if err := c.Get(ctx, r.NamespacedName, &m); err != nil || m.Data["cluster"] == r.Cluster {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	m.Data = map[string]string{"cluster": r.Cluster}
	return reconcile.Result{}, c.Update(ctx, &m)
}

// reconciled returns the requests since the last call, sorted, each once.
func (f *fleet) reconciled() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	slices.Sort(f.requests)
	all := strings.Join(slices.Compact(f.requests), " ")
	f.requests = nil
	return all
}

func (f *fleet) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

// settle waits less than a second, until the fleet has reacted to everything so far.
func (f *fleet) settle() {
	time.Sleep(900 * time.Millisecond)
	synctest.Wait()
}

// states returns all clusters with their states.
func (f *fleet) states() string {
	f.settle()
	var all []string
	for _, c := range f.Clusters() {
		all = append(all, c.Name+" "+c.State.String())
	}
	return strings.Join(all, ", ")
}

func (f *fleet) wants(what, want string) {
	f.t.Helper()
	if got := f.states(); got != want {
		f.t.Errorf("%s: clusters are %q, want %q", what, got, want)
	}
}

// serve makes a control plane that has ConfigMaps with these names.
func (f *fleet) serve(name string, configMaps ...string) *localapi.Server {
	f.t.Helper()
	server, err := localapi.New(localapi.Options{NoKubernetesService: true})
	f.must(err)
	for _, c := range configMaps {
		f.must(server.Seed(f.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: c}}))
	}
	f.planes.mu.Lock()
	defer f.planes.mu.Unlock()
	if old := f.planes.servers[name]; old != nil {
		f.t.Cleanup(func() { _ = old.Close() })
	}
	f.planes.servers[name] = server
	return server
}

// announce creates a Project whose condition Ready has that status.
func (f *fleet) announce(name, status string, labels ...string) *unstructured.Unstructured {
	f.t.Helper()
	u := objectOf(External(), name, labels...)
	f.must(f.core.Create(f.ctx, u))
	f.must(f.core.Status().Update(f.ctx, ready(u, External(), status)))
	return u
}

// held returns the name that reconcile has written into the ConfigMap.
func held(f *fleet, server *localapi.Server, name string) string {
	f.t.Helper()
	c, err := kubernetes.NewForConfig(server.RESTConfig())
	f.must(err)
	m, err := c.CoreV1().ConfigMaps("default").Get(f.ctx, name, metav1.GetOptions{})
	f.must(err)
	return m.Data["cluster"]
}

func TestFleetOfProjects(t *testing.T) {
	inFleet(t, ProjectOptions{}, nil, func(f *fleet) {
		f.serve("a", "x")
		p := f.announce("a", "False")
		f.wants("before it is ready", "a Waiting")
		if _, err := f.GetCluster(f.ctx, "a"); !errors.Is(err, multicluster.ErrClusterNotLive) {
			t.Errorf("the cluster is there: %v", err)
		}
		f.must(f.core.Status().Update(f.ctx, ready(p, External(), "True")))
		f.wants("ready", "a Live")
		c, err := f.GetCluster(f.ctx, "a")
		f.must(err)
		if want := "http://localapi" + pathBefore + "a" + pathAfter; c.Config().Host != want {
			t.Errorf("it is at %s, want %s", c.Config().Host, want)
		}
	})
}

func TestSameNamesInThreeProjects(t *testing.T) {
	inFleet(t, ProjectOptions{}, nil, func(f *fleet) {
		servers := map[string]*localapi.Server{}
		for _, name := range []string{"a", "b", "c"} {
			servers[name] = f.serve(name, "x")
			f.announce(name, "True")
		}
		f.wants("three", "a Live, b Live, c Live")
		if got := f.reconciled(); got != "cluster://a/default/x cluster://b/default/x cluster://c/default/x" {
			t.Errorf("reconciled %s", got)
		}
		for name, server := range servers {
			if got := held(f, server, "x"); got != name {
				t.Errorf("the config map of %s was written for %q", name, got)
			}
		}
	})
}

// Milo's provider holds a lock, without a timeout, while a cluster's caches sync. So there, one project that does not
// answer keeps all others from joining, and blocks Get.
func TestUnreachableProjectDelaysNoOther(t *testing.T) {
	inFleet(t, ProjectOptions{}, nil, func(f *fleet) {
		f.planes.servers["dead"] = nil
		f.announce("dead", "True")
		f.settle()
		f.serve("a", "x")
		f.announce("a", "True")
		f.wants("less than a second later", "a Live, dead Joining")
		before := time.Now()
		if _, err := f.GetCluster(f.ctx, "dead"); !errors.Is(err, multicluster.ErrClusterNotLive) {
			t.Errorf("the dead cluster is there: %v", err)
		}
		_, err := f.GetCluster(f.ctx, "a")
		f.must(err)
		if took := time.Since(before); took != 0 {
			t.Errorf("Get took %v", took)
		}
		time.Sleep(time.Minute)
		f.serve("dead", "x")
		time.Sleep(3 * time.Minute)
		f.wants("alive at last", "a Live, dead Live")
	})
}

func TestAProjectMadeAnewIsEngagedAnew(t *testing.T) {
	inFleet(t, ProjectOptions{}, nil, func(f *fleet) {
		f.serve("a", "x")
		p := f.announce("a", "True")
		f.wants("first", "a Live")
		before, err := f.GetCluster(f.ctx, "a")
		f.must(err)
		f.must(f.core.Delete(f.ctx, p))
		server := f.serve("a", "x")
		f.announce("a", "True")
		f.wants("second", "a Live")
		now, err := f.GetCluster(f.ctx, "a")
		f.must(err)
		if now == before || !errors.Is(before.Err(), multicluster.ErrClusterGone) {
			t.Errorf("the old cluster: %v", before.Err())
		}
		if got := held(f, server, "x"); got != "a" {
			t.Errorf("the successor's config map says %q", got)
		}
	})
}

func TestAProjectThatMovedIsEngagedAnew(t *testing.T) {
	o := ProjectOptions{Discovery: External()}
	o.Discovery.Endpoint = "{{.Base}}" + pathBefore + "{{.Object.spec.at}}" + pathAfter
	inFleet(t, o, nil, func(f *fleet) {
		f.serve("here", "x")
		there := f.serve("there", "x")
		p := f.announce("a", "False")
		f.wants("it does not say where it is", "a Waiting")
		p.Object["spec"] = map[string]any{"at": "here"}
		f.must(f.core.Update(f.ctx, p))
		f.must(f.core.Status().Update(f.ctx, ready(p, External(), "True")))
		f.wants("here", "a Live")
		before, err := f.GetCluster(f.ctx, "a")
		f.must(err)
		p.Object["spec"] = map[string]any{"at": "there"}
		f.must(f.core.Update(f.ctx, p))
		f.wants("there", "a Live")
		if !errors.Is(before.Err(), multicluster.ErrClusterGone) {
			t.Errorf("the cluster that it was: %v", before.Err())
		}
		if got := held(f, there, "x"); got != "a" {
			t.Errorf("the config map there says %q", got)
		}
	})
}

func TestAProjectThatIsNotReadyForAWhileIsEngagedAgain(t *testing.T) {
	inFleet(t, ProjectOptions{}, nil, func(f *fleet) {
		f.serve("a", "x")
		p := f.announce("a", "True")
		f.wants("ready", "a Live")
		f.must(f.core.Status().Update(f.ctx, ready(p, External(), "False")))
		f.wants("not ready any more", "a Waiting")
		f.reconciled()
		f.must(f.core.Status().Update(f.ctx, ready(p, External(), "True")))
		f.wants("ready again", "a Live")
		if got := f.reconciled(); got != "cluster://a/default/x" {
			t.Errorf("reconciled %q", got)
		}
	})
}

func TestLabelsSelectProjects(t *testing.T) {
	inFleet(t, ProjectOptions{LabelSelector: "env=prod"}, nil, func(f *fleet) {
		f.serve("a")
		f.serve("b")
		a := f.announce("a", "True", "env=prod")
		f.announce("b", "True", "env=test")
		f.wants("one has the label", "a Live")
		a.SetLabels(nil)
		f.must(f.core.Update(f.ctx, a))
		f.wants("the label is taken away", "")
		a.SetLabels(map[string]string{"env": "prod"})
		f.must(f.core.Update(f.ctx, a))
		f.wants("and put back", "a Live")
	})
}

func TestIndexesBeforeAndAfterProjectsAreEngaged(t *testing.T) {
	first := func(obj client.Object) []string { return []string{obj.GetName()[:1]} }
	found := func(f *fleet, cluster, field string) int {
		c, err := f.GetCluster(f.ctx, cluster)
		f.must(err)
		var list corev1.ConfigMapList
		f.must(c.List(f.ctx, &list, client.MatchingFields{field: "x"}))
		return len(list.Items)
	}
	inFleet(t, ProjectOptions{}, func(f *fleet) {
		f.must(f.IndexField(f.ctx, &corev1.ConfigMap{}, "before", first))
	}, func(f *fleet) {
		f.serve("a", "x1", "x2", "y")
		f.announce("a", "True")
		f.wants("one", "a Live")
		f.must(f.IndexField(f.ctx, &corev1.ConfigMap{}, "after", first))
		f.serve("b", "x1")
		f.announce("b", "True")
		f.wants("two", "a Live, b Live")
		for _, field := range []string{"before", "after"} {
			if a, b := found(f, "a", field), found(f, "b", field); a != 2 || b != 1 {
				t.Errorf("by the index %s there are %d and %d, want 2 and 1", field, a, b)
			}
		}
	})
}

// A project that departs leaves nothing behind, whether it was live or was never reached. Milo's provider keeps the
// cancel function of a live one, and the started cluster of one that was never reached.
func TestDepartedProjectsDoNotLeak(t *testing.T) {
	inFleet(t, ProjectOptions{}, nil, func(f *fleet) {
		round := func() {
			server := f.serve("a", "x", "y", "z")
			f.planes.mu.Lock()
			f.planes.servers["dead"] = nil
			f.planes.mu.Unlock()
			a, dead := f.announce("a", "True"), f.announce("dead", "True")
			f.wants("joined", "a Live, dead Joining")
			f.must(f.core.Delete(f.ctx, a))
			f.must(f.core.Delete(f.ctx, dead))
			f.wants("left", "")
			f.must(server.Close())
			f.planes.mu.Lock()
			delete(f.planes.servers, "a")
			f.planes.mu.Unlock()
		}
		round()
		before := runtime.NumGoroutine()
		for range 50 {
			round()
		}
		if after := runtime.NumGoroutine(); after > before+5 { // goroutines of other tests may come and go
			t.Errorf("%d goroutines after 50 rounds, %d before", after, before)
		}
	})
}
