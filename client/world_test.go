package client_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/transport"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/audit"
	"github.com/flyball-dev/flyball/localapi/gate"
)

// world has an API server whose watches lag, and a client with caches.
type world struct {
	*client.Cluster
	t *testing.T
	// ctx is the context of a reconcile, and outside that of another reader.
	ctx, outside context.Context
	api          *localapi.Server
	factory      *informer.Factory

	mu sync.Mutex
	// lag delays every frame of a watch. The frames keep their order.
	lag time.Duration
	// before and after decide about requests and answers; nil lets all pass.
	before, after func(r *gate.Request) gate.Verdict
	// cut ends every watch at its next frame.
	cut bool
}

func (w *world) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

// lose loses the answers of all writes. applied reports whether the writes take effect.
func (w *world) lose(applied bool) {
	lose := func(r *gate.Request) gate.Verdict {
		if r.Mutates() {
			return gate.Verdict{Action: gate.Drop}
		}
		return gate.Verdict{}
	}
	w.set(func() {
		if applied {
			w.after = lose
		} else {
			w.before = lose
		}
	})
}

func (w *world) gate() gate.Gate {
	ask := func(f func(r *gate.Request) gate.Verdict, r *gate.Request) gate.Verdict {
		if f == nil {
			return gate.Verdict{}
		}
		return f(r)
	}
	return gate.Funcs{
		OnRequest: func(_ context.Context, r *gate.Request) gate.Verdict {
			w.mu.Lock()
			f := w.before
			w.mu.Unlock()
			return ask(f, r)
		},
		OnAnswer: func(_ context.Context, r *gate.Request, _ gate.Answer) gate.Verdict {
			w.mu.Lock()
			f := w.after
			w.mu.Unlock()
			return ask(f, r)
		},
		OnFrame: func(ctx context.Context, _ *gate.Request, _ gate.Frame) gate.Verdict {
			w.mu.Lock()
			lag, cut := w.lag, w.cut
			w.mu.Unlock()
			if cut {
				return gate.Verdict{Action: gate.Close}
			}
			select {
			case <-time.After(lag):
			case <-ctx.Done():
			}
			return gate.Verdict{}
		},
	}
}

// inWorld runs test in a bubble with a server that has objects, and with empty caches.
func inWorld(t *testing.T, o client.Options, test func(w *world), objects ...runtime.Object) {
	t.Helper()
	setup{client: o}.run(t, test, objects...)
}

// setup describes a world.
type setup struct {
	client client.Options
	// wrap is between the server and the client with its caches.
	wrap transport.WrapperFunc
}

func (s setup) run(t *testing.T, test func(w *world), objects ...runtime.Object) {
	t.Helper()
	o := s.client
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t}
		api, err := localapi.New(localapi.Options{Gate: w.gate(), Audit: &audit.Log{}})
		if err != nil {
			t.Fatal(err)
		}
		defer api.Close()
		if err := api.Seed(t.Context(), objects...); err != nil {
			t.Fatal(err)
		}
		w.api = api
		config := api.RESTConfig()
		config.Wrap(s.wrap)
		if w.factory, err = informer.NewFactory(config, informer.FactoryOptions{}); err != nil {
			t.Fatal(err)
		}
		o.Informers = w.factory
		if w.Cluster, err = client.New(config, o); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
		w.outside, w.ctx = ctx, client.WithOwner(ctx, "reconcile")
		var wg sync.WaitGroup
		wg.Go(func() { _ = w.factory.Run(ctx) })
		defer wg.Wait()
		defer stop()
		test(w)
	})
}

// calls returns how many requests with these verbs the server got since the last reset.
func (w *world) calls(verbs ...string) (n int) {
	for _, e := range w.api.Audit().Entries(nil) {
		for _, verb := range verbs {
			if e.Verb == verb {
				n++
			}
		}
	}
	return n
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// warm creates the caches of these kinds.
func (w *world) warm(lists ...client.ObjectList) {
	w.t.Helper()
	for _, list := range lists {
		w.must(w.List(w.ctx, list))
	}
	synctest.Wait() // The watches are open.
	w.api.Audit().Reset()
}

func configMap(name string, labels ...string) *corev1.ConfigMap {
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	for i := 0; i+1 < len(labels); i += 2 {
		if m.Labels == nil {
			m.Labels = map[string]string{}
		}
		m.Labels[labels[i]] = labels[i+1]
	}
	return m
}

func keyOf(obj client.Object) client.ObjectKey { return client.ObjectKeyFromObject(obj) }
