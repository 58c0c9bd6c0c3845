package controllerruntime_test

import (
	"context"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/flyball-dev/flyball/interop/controllerruntime"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/audit"
	"github.com/flyball-dev/flyball/localapi/gate"
)

func TestMain(m *testing.M) {
	if os.Getenv(gates) != "" {
		setGates()
		return
	}
	ctrllog.SetLogger(logr.Discard())
	m.Run()
}

// makers are the caches that pass the same tests.
var makers = map[string]cache.NewCacheFunc{
	"controller-runtime": cache.New,
	"flyball":            controllerruntime.NewCache,
	"flyball, lean":      controllerruntime.NewLeanCache,
	"controller-runtime, our informers": func(config *rest.Config, o cache.Options) (cache.Cache, error) {
		o.NewInformer = controllerruntime.NewInformer
		return controllerruntime.NewCache(config, o) // Which returns controller-runtime's.
	},
}

// world is a server, a cache over it, and a client without a cache to change things with.
type world struct {
	cache.Cache
	t      *testing.T
	ctx    context.Context
	name   string
	api    *localapi.Server
	direct client.Client
	start  func()
}

// ours says that the cache is NewCache's or NewLeanCache's.
func (w *world) ours() bool { return strings.HasPrefix(w.name, "flyball") }

// lean says that it is NewLeanCache's.
func (w *world) lean() bool { return w.name == "flyball, lean" }

// newClient is NewClient for our caches, controller-runtime's for its own.
func (w *world) newClient() client.NewClientFunc {
	if w.ours() {
		return controllerruntime.NewClient
	}
	return client.New
}

// bothCaches runs test in a bubble for each kind of cache. Nothing is started.
func bothCaches(t *testing.T, o cache.Options, g gate.Gate, test func(w *world), objects ...runtime.Object) {
	t.Helper()
	for name, newCache := range makers {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api, err := localapi.New(localapi.Options{Gate: g, Audit: &audit.Log{}})
				if err != nil {
					t.Fatal(err)
				}
				defer api.Close()
				if err := api.Seed(t.Context(), objects...); err != nil {
					t.Fatal(err)
				}
				w := &world{t: t, name: name, api: api}
				if w.direct, err = client.New(api.RESTConfig(), client.Options{Scheme: o.Scheme}); err != nil {
					t.Fatal(err)
				}
				if w.Cache, err = newCache(api.RESTConfig(), o); err != nil {
					t.Fatal(err)
				}
				var stop func()
				w.ctx, w.start, stop = switches(t, func(ctx context.Context) error { return w.Start(ctx) })
				defer stop()
				test(w)
			})
		})
	}
}

// switches returns a context, a function that runs calls with it, and a function that ends both and waits.
func switches(t *testing.T, run func(context.Context) error) (ctx context.Context, start, stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	start = func() {
		wg.Go(func() {
			if err := run(ctx); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
	}
	stop = func() {
		cancel()
		wg.Wait()
	}
	return ctx, start, stop
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// names lists ConfigMaps.
func (w *world) names(opts ...client.ListOption) map[string]bool {
	w.t.Helper()
	var list corev1.ConfigMapList
	w.must(w.List(w.ctx, &list, opts...))
	names := map[string]bool{}
	for _, m := range list.Items {
		names[m.Namespace+"/"+m.Name] = true
	}
	return names
}

// want compares what a list finds.
func (w *world) want(what string, got map[string]bool, names ...string) {
	w.t.Helper()
	same := len(got) == len(names)
	for _, name := range names {
		same = same && got[name]
	}
	if !same {
		w.t.Errorf("%s: got %v, want %v", what, got, names)
	}
}

// later waits for d, and until everything that happens meanwhile is over.
func later(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func configMap(namespace, name string, labels map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels},
		Data:       map[string]string{"kind": name},
	}
}

func namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}
