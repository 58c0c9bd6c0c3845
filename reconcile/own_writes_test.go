package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/audit"
	"github.com/flyball-dev/flyball/localapi/gate"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/reconcile/handler"
	"github.com/flyball-dev/flyball/reconcile/source"
)

// process is a controller of ConfigMaps in a bubble, with its own client, caches and server.
type process struct {
	*client.Cluster
	api        *localapi.Server
	informers  *informer.Factory
	controller *reconcile.Controller[reconcile.Request]
}

// inProcess runs the controller that setup returns until check returns.
func inProcess(t *testing.T, g gate.Gate,
	setup func(p *process) (reconcile.Reconciler[reconcile.Request], reconcile.Options[reconcile.Request]),
	check func(ctx context.Context, p *process), objects ...runtime.Object,
) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		api, err := localapi.New(localapi.Options{Gate: g, Audit: &audit.Log{}})
		if err != nil {
			t.Fatal(err)
		}
		defer api.Close()
		if err := api.Seed(t.Context(), objects...); err != nil {
			t.Fatal(err)
		}
		ctx := klog.NewContext(t.Context(), klog.Logger{})
		runProcess(t, ctx, api, setup, check)
	})
}

// runProcess runs the process from its start to its end.
func runProcess(t *testing.T, parent context.Context, api *localapi.Server,
	setup func(p *process) (reconcile.Reconciler[reconcile.Request], reconcile.Options[reconcile.Request]),
	check func(ctx context.Context, p *process),
) {
	t.Helper()
	p := &process{api: api}
	var err error
	if p.informers, err = informer.NewFactory(api.RESTConfig(), informer.FactoryOptions{}); err != nil {
		t.Fatal(err)
	}
	if p.Cluster, err = client.New(api.RESTConfig(), client.Options{Informers: p.informers}); err != nil {
		t.Fatal(err)
	}
	r, o := setup(p)
	p.controller = reconcile.New("test", r, o)
	maps, err := informer.For[*corev1.ConfigMap](p.informers)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.controller.Watch(source.Kind(maps, handler.EnqueueObject[*corev1.ConfigMap]())); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(parent)
	var wg sync.WaitGroup
	wg.Go(func() { _ = p.informers.Run(ctx) })
	wg.Go(func() { _ = p.controller.Run(ctx) })
	check(ctx, p)
	stop()
	wg.Wait()
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
}

// slow delays each frame of all watches.
func slow(lag time.Duration) gate.Funcs {
	return gate.Funcs{OnFrame: func(ctx context.Context, _ *gate.Request, _ gate.Frame) gate.Verdict {
		select {
		case <-time.After(lag):
		case <-ctx.Done():
		}
		return gate.Verdict{}
	}}
}

// Case: with Options.Ready, a reconcile does not begin before the caches have the writes of the one before. So a
// reconciler that reads through listers creates no second child, and does not revert its own update. Its key is put off
// without an error.
func TestReadyPutsOffUntilOwnWritesAreInTheCache(t *testing.T) {
	var lagging []string
	inProcess(t, slow(time.Second),
		func(p *process) (reconcile.Reconciler[reconcile.Request], reconcile.Options[reconcile.Request]) {
			r := reconcile.Func[reconcile.Request](func(ctx context.Context,
				key reconcile.Request,
			) (reconcile.Result, error) {
				var owner corev1.ConfigMap
				if err := p.Get(ctx, key.NamespacedName, &owner, client.Lagging); err != nil || key.Name != "owner" {
					return reconcile.Result{}, client.IgnoreNotFound(err)
				}
				var children corev1.SecretList
				if err := p.List(ctx, &children, client.Lagging); err != nil {
					return reconcile.Result{}, err
				}
				lagging = append(lagging, fmt.Sprint(len(children.Items)))
				if len(children.Items) > 0 {
					return reconcile.Result{}, nil
				}
				return reconcile.Result{},
					p.Create(ctx,
						&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "child-"}})
			})
			return r, reconcile.Options[reconcile.Request]{Ready: func(ctx context.Context, _ reconcile.Request) error {
				return p.Ready(ctx, client.OwnerFrom(ctx))
			}}
		}, func(_ context.Context, p *process) {
			for range 50 { // It is triggered all the time.
				time.Sleep(50 * time.Millisecond)
				p.controller.Enqueue(reconcile.RequestFor(configMap("owner")))
			}
			time.Sleep(time.Minute)
			creates := p.api.Audit().Entries(func(e audit.Entry) bool { return e.Verb == "create" })
			if st := p.controller.Stats(); len(creates) != 1 || st.Stale == 0 || st.Errors != 0 {
				t.Errorf("%d children, stats %+v, lists %v", len(creates), st, lagging)
			}
		}, configMap("owner"))
}

// ErrStale from a read is no failure: there is no backoff, no error is counted, and the key waits for RetryAfter.
func TestStaleIsAQuietRequeue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Duration
		start := time.Now()
		c := reconcile.New("test", reconcile.Func[string](func(context.Context, string) (reconcile.Result, error) {
			at = append(at, time.Since(start))
			switch len(at) {
			case 1:
				return reconcile.Result{}, fmt.Errorf("list: %w", client.ErrStale)
			case 2:
				return reconcile.Result{}, fmt.Errorf("list: %w", &client.StaleError{RetryAfter: time.Minute})
			}
			return reconcile.Result{}, nil
		}), reconcile.Options[string]{MaxRetries: 1})
		c.Enqueue("a")
		ctx, stop := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
		done := make(chan error)
		go func() { done <- c.Run(ctx) }()
		time.Sleep(time.Hour)
		synctest.Wait()
		if got := fmt.Sprint(at); got != "[0s 100ms 1m0.1s]" {
			t.Errorf("ran at %s", got)
		}
		if st := c.Stats(); st.Stale != 2 || st.Errors != 0 || st.Retries != 0 || st.Dropped != 0 {
			t.Errorf("stats %+v", st)
		}
		stop()
		<-done
	})
}

// Case: the process crashes after each of its writes in turn and starts again with nothing in memory. The end is always
// the same: the owner has one Secret and one Service, and is marked as done.
func TestCrashAfterEachWrite(t *testing.T) {
	for crash := range 5 {
		t.Run(fmt.Sprint("write ", crash), func(t *testing.T) {
			var writes atomic.Int64
			var crashed chan struct{}
			g := gate.Funcs{OnAnswer: func(_ context.Context, r *gate.Request, _ gate.Answer) gate.Verdict {
				if !r.Mutates() {
					return gate.Verdict{}
				}
				if writes.Add(1) != int64(crash) {
					return gate.Verdict{}
				}
				crashed <- struct{}{}
				return gate.Verdict{Action: gate.Drop}
			}}
			synctest.Test(t, func(t *testing.T) {
				crashed = make(chan struct{}, 1)
				api, err := localapi.New(localapi.Options{Gate: g, Audit: &audit.Log{}})
				if err != nil {
					t.Fatal(err)
				}
				defer api.Close()
				if err := api.Seed(t.Context(), configMap("owner")); err != nil {
					t.Fatal(err)
				}
				ctx := klog.NewContext(t.Context(), klog.Logger{})
				runProcess(t, ctx, api, threeSteps, func(context.Context, *process) {
					select {
					case <-crashed:
					case <-time.After(time.Minute):
					}
				})
				runProcess(t, ctx, api, threeSteps, func(ctx context.Context, p *process) {
					time.Sleep(3 * time.Minute)
					var owner corev1.ConfigMap
					var secrets corev1.SecretList
					var services corev1.ServiceList
					err := errors.Join(p.Get(ctx, client.ObjectKeyFromObject(configMap("owner")), &owner, client.Live),
						p.List(ctx, &secrets, client.Live),
						p.List(ctx, &services, client.Live, client.MatchingFields{"metadata.name": "owner"}))
					if err != nil || owner.Data["done"] != "yes" || len(secrets.Items) != 1 ||
						len(services.Items) != 1 {
						t.Errorf("%v: owner %v, %d secrets, %d services", err, owner.Data, len(secrets.Items),
							len(services.Items))
					}
				})
			})
		})
	}
}

// threeSteps creates two children, one of them with a generated name and found by label, and then marks the owner as
// done.
func threeSteps(p *process) (reconcile.Reconciler[reconcile.Request], reconcile.Options[reconcile.Request]) {
	return reconcile.Func[reconcile.Request](func(ctx context.Context,
		key reconcile.Request,
	) (reconcile.Result, error) {
		var owner corev1.ConfigMap
		if err := p.Get(ctx, key.NamespacedName, &owner); err != nil || key.Name != "owner" {
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
		var secrets corev1.SecretList
		if err := p.List(ctx, &secrets, client.MatchingLabels{"of": key.Name}); err != nil {
			return reconcile.Result{}, err
		}
		if len(secrets.Items) == 0 {
			secret := &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: "default", GenerateName: "s-",
					Labels: map[string]string{"of": key.Name},
				},
			}
			if err := p.Create(ctx, secret); err != nil {
				return reconcile.Result{}, err
			}
		}
		service := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: key.Name},
			Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
		}
		if err := p.Create(ctx, service); client.IgnoreAlreadyExists(err) != nil {
			return reconcile.Result{}, err
		}
		before := owner.DeepCopy()
		if owner.Data = map[string]string{"done": "yes"}; before.Data["done"] == "yes" {
			return reconcile.Result{}, nil
		}
		return reconcile.Result{}, p.Patch(ctx, &owner, client.MergeFrom(before))
	}), reconcile.Options[reconcile.Request]{}
}

// Case: many conflicts in a row are retried with backoff. No write overwrites another one blindly, so no increment of
// either writer is lost.
func TestConflictStorm(t *testing.T) {
	const others = 200
	inProcess(t, slow(30*time.Millisecond),
		func(p *process) (reconcile.Reconciler[reconcile.Request], reconcile.Options[reconcile.Request]) {
			return reconcile.Func[reconcile.Request](func(ctx context.Context,
				key reconcile.Request,
			) (reconcile.Result, error) {
				var m corev1.ConfigMap
				if err := p.Get(ctx, key.NamespacedName, &m); err != nil || key.Name != "owner" ||
					len(m.Data["theirs"]) < 2 || m.Data["ours"] == "done" {
					return reconcile.Result{}, client.IgnoreNotFound(err)
				}
				// From the tenth write of the other client on, the watch lags behind its writes.
				m.Data = map[string]string{"theirs": m.Data["theirs"], "ours": "done"}
				return reconcile.Result{}, p.Update(ctx, &m)
			}), reconcile.Options[reconcile.Request]{}
		}, func(ctx context.Context, p *process) {
			them, err := client.New(p.api.RESTConfig(), client.Options{})
			if err != nil {
				t.Fatal(err)
			}
			for i := range others {
				var m corev1.ConfigMap
				if err := them.Get(ctx, client.ObjectKeyFromObject(configMap("owner")), &m); err != nil {
					t.Fatal(err)
				}
				if m.Data == nil {
					m.Data = map[string]string{}
				}
				m.Data["theirs"] = fmt.Sprint(i)
				if err := them.Update(ctx, &m); err != nil && !apierrors.IsConflict(err) {
					t.Fatal(err)
				}
				time.Sleep(7 * time.Millisecond)
			}
			time.Sleep(time.Hour)
			var m corev1.ConfigMap
			if err := them.Get(ctx, client.ObjectKeyFromObject(configMap("owner")), &m); err != nil {
				t.Fatal(err)
			}
			st := p.controller.Stats()
			// one attempt for each event, and a few retries
			if m.Data["ours"] != "done" || m.Data["theirs"] != fmt.Sprint(others-1) || st.Errors == 0 ||
				st.Syncs > st.Events+10 {
				t.Errorf("data %v, stats %+v", m.Data, st)
			}
		}, configMap("owner"))
}
