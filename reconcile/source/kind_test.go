package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/reconcile/handler"
	"github.com/flyball-dev/flyball/workqueue"
)

type (
	reconciler = reconcile.Func[request]
	request    = reconcile.Request
	result     = reconcile.Result
)

// feedback is an API of pods. The test sends the watch events.
type feedback struct {
	pods   []*corev1.Pod
	err    error                             // the error of List
	events chan listwatch.Event[*corev1.Pod] // sent by the test, unbuffered
}

func (f *feedback) List(_ context.Context, _ listwatch.ListOptions,
	yield func(*corev1.Pod) error,
) (listwatch.ListResult, error) {
	for _, p := range f.pods {
		if err := yield(p); err != nil {
			return listwatch.ListResult{}, err
		}
	}
	return listwatch.ListResult{ResourceVersion: "10"}, f.err
}

func (f *feedback) Watch(_ context.Context, o listwatch.WatchOptions) (listwatch.Watch[*corev1.Pod], error) {
	if o.SendInitialEvents {
		return nil, errors.New("this server has no streaming lists")
	}
	return f, nil
}

func (f *feedback) Next(ctx context.Context) (listwatch.Event[*corev1.Pod], error) {
	select {
	case e := <-f.events:
		return e, nil
	case <-ctx.Done():
		return listwatch.Event[*corev1.Pod]{}, io.EOF
	}
}

func (f *feedback) Close() error { return nil }

func pod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
}

func version(p *corev1.Pod, rv string) *corev1.Pod {
	p.ResourceVersion, p.UID = rv, "uid"
	return p
}

// runKind runs a controller of pods with an informer of f until the test calls end.
func runKind(t *testing.T, f *feedback,
	r reconcile.Reconciler[reconcile.Request],
) (c *reconcile.Controller[reconcile.Request], src reconcile.Source[reconcile.Request], end func()) {
	t.Helper()
	ctx, stop := context.WithCancel(quiet(t.Context()))
	inf := informer.NewSharedInformer(f, informer.Options[*corev1.Pod]{Resource: "pods"})
	c = reconcile.New("test", r, reconcile.Options[reconcile.Request]{})
	src = Kind(inf, handler.EnqueueObject[*corev1.Pod]())
	if err := c.Watch(src); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() { _ = inf.Run(ctx) })
	wg.Go(func() {
		if err := c.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	synctest.Wait()
	return c, src, func() { stop(); wg.Wait() }
}

func TestKindTurnsEventsIntoKeysWithTheirCauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &feedback{pods: []*corev1.Pod{version(pod("a"), "5")}, events: make(chan listwatch.Event[*corev1.Pod])}
		var mu sync.Mutex
		var got []string
		r := reconciler(func(ctx context.Context, key request) (result, error) {
			mu.Lock()
			defer mu.Unlock()
			for _, cause := range reconcile.Causes(ctx) {
				got = append(got,
					strings.Join(
						[]string{key.String(), cause.Source, cause.Event, cause.Object, cause.ResourceVersion}, " ",
					))
			}
			return result{}, nil
		})
		c, _, end := runKind(t, f, r)
		for _, e := range []listwatch.Event[*corev1.Pod]{
			{Type: listwatch.Modified, Object: version(pod("a"), "11"), ResourceVersion: "11"},
			{Type: listwatch.Removed, Object: version(pod("a"), "12"), ResourceVersion: "12"},
		} {
			f.events <- e
			synctest.Wait()
		}
		end()
		want(t, got, []string{"ns/a pods Add ns/a 5", "ns/a pods Update ns/a 11", "ns/a pods Delete ns/a 12"})
		if got := c.Stats(); got.Events != 3 || got.Adds != 3 || got.Syncs != 3 {
			t.Errorf("stats %+v", got)
		}
	})
}

// The health of a controller has the error of its informer.
func TestHealthSaysWhyAnInformerIsNotSynced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &feedback{err: errors.New("no route to host")}
		c, _, end := runKind(t, f, reconciler(func(context.Context, request) (result, error) {
			t.Error("reconciled without a cache")
			return result{}, nil
		}))
		time.Sleep(5 * time.Second)
		err := c.Health()
		if err == nil || !strings.Contains(err.Error(), "pods") ||
			!strings.Contains(err.Error(), "no route to host") {
			t.Errorf("health: %v", err)
		}
		end()
	})
}

// resyncing is an informer that resyncs its handlers every two minutes.
type resyncing struct {
	informer.Informer[*corev1.Pod]
}

func (r resyncing) AddHandler(h informer.Handler[*corev1.Pod], o informer.HandlerOptions,
) (informer.Registration, error) {
	o.Resync = 2 * time.Minute
	return r.Informer.AddHandler(h, o)
}

// A thousand unchanged objects take 50 ms each. An object that changes meanwhile does not wait for all of them, neither
// in a process that leads from its start nor in one that takes over.
func TestChangedObjectsPassUnchanged(t *testing.T) {
	priority := workqueue.PriorityOptions{}
	for name, order := range map[string]func() *workqueue.Order[request]{
		"default":  func() *workqueue.Order[request] { return nil },
		"priority": func() *workqueue.Order[request] { return workqueue.NewPriorityOrder[request](priority) },
		"fair": func() *workqueue.Order[request] {
			return workqueue.NewFairOrder(workqueue.FairOptions[request]{Within: &priority})
		},
	} {
		for _, follows := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s,follows=%v", name, follows), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { testChangedObjectsPassUnchanged(t, order(), follows) })
			})
		}
	}
}

func testChangedObjectsPassUnchanged(t *testing.T, order *workqueue.Order[request], follows bool) {
	f := &feedback{events: make(chan listwatch.Event[*corev1.Pod])}
	for i := range 1000 {
		f.pods = append(f.pods, version(pod(fmt.Sprintf("pod-%03d", i)), "5"))
	}
	var mu sync.Mutex
	ended := map[string]time.Time{}
	c := reconcile.New("test", reconciler(func(_ context.Context, key request) (result, error) {
		time.Sleep(50 * time.Millisecond)
		mu.Lock()
		defer mu.Unlock()
		ended[key.Name] = time.Now()
		return result{}, nil
	}), reconcile.Options[request]{Order: order})
	ctx, stop := context.WithCancel(quiet(t.Context()))
	inf := informer.NewSharedInformer(f, informer.Options[*corev1.Pod]{Resource: "pods"})
	if err := c.Watch(Kind(resyncing{inf}, handler.EnqueueObject[*corev1.Pod]())); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() { _ = inf.Run(ctx) })
	if follows {
		wg.Go(func() { _ = c.Warmup(ctx) })
	}
	synctest.Wait()
	wg.Go(func() { _ = c.Run(ctx) })

	// ten times during the initial list, then during a resync
	for i := range 11 {
		time.Sleep(4*time.Second + 111*time.Millisecond)
		if i == 10 {
			time.Sleep(2 * time.Minute)
		}
		name, rv, began := fmt.Sprintf("pod-%03d", 999-i), fmt.Sprint(11+i), time.Now()
		f.events <- listwatch.Event[*corev1.Pod]{
			Type: listwatch.Modified, Object: version(pod(name), rv), ResourceVersion: rv,
		}
		time.Sleep(200 * time.Millisecond)
		synctest.Wait()
		mu.Lock()
		if !ended[name].After(began) {
			t.Errorf("%s, change %d, was not reconciled within 200 ms", name, i)
		}
		mu.Unlock()
	}
	time.Sleep(time.Minute)
	stop()
	wg.Wait()
	if got := len(ended); got != 1000 {
		t.Errorf("%d objects were reconciled, want 1000", got)
	}
}
