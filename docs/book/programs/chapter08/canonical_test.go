package chapter08

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	clientqueue "k8s.io/client-go/util/workqueue"

	"github.com/flyball-dev/flyball/docs/book/internal/book"
	"github.com/flyball-dev/flyball/docs/book/internal/figure"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/writes"
)

// A controller has the shape of most controllers that are written with client-go. It sets the label audited of each
// pod.
type controller struct {
	pods   corelisters.PodLister
	queue  clientqueue.TypedRateLimitingInterface[string]
	update func(ctx context.Context, pod *corev1.Pod) error // Sends a PUT to the API server.
}

func (c *controller) runWorker(ctx context.Context) {
	for c.processNextWorkItem(ctx) {
	}
}

func (c *controller) processNextWorkItem(ctx context.Context) bool {
	key, shutdown := c.queue.Get()
	if shutdown {
		return false
	}
	defer c.queue.Done(key)
	if err := c.syncHandler(ctx, key); err != nil {
		c.queue.AddRateLimited(key) // Again, after a backoff.
		return true
	}
	c.queue.Forget(key) // The next failure is a first one.
	return true
}

func (c *controller) syncHandler(ctx context.Context, key string) error {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return err
	}
	pod, err := c.pods.Pods(namespace).Get(name)
	if apierrors.IsNotFound(err) {
		return nil // Deleted meanwhile. There is nothing left to do.
	}
	if err != nil {
		return err
	}
	if pod.Labels["audited"] == "yes" {
		return nil // All is as it should be.
	}
	pod = pod.DeepCopy() // The original belongs to the cache.
	metav1.SetMetaDataLabel(&pod.ObjectMeta, "audited", "yes")
	return c.update(ctx, pod)
}

// A recorder is a queue that notes what the loop calls.
type recorder struct {
	clientqueue.TypedRateLimitingInterface[string]
	began time.Time
	lines []string
}

func (r *recorder) note(call string) {
	if len(r.lines) > 0 {
		r.lines[len(r.lines)-1] += ", " + call
	}
}

func (r *recorder) Get() (key string, shutdown bool) {
	key, shutdown = r.TypedRateLimitingInterface.Get()
	if !shutdown {
		r.lines = append(r.lines, fmt.Sprintf("%4v  Get %s", time.Since(r.began), key))
	}
	return key, shutdown
}

func (r *recorder) Forget(key string) {
	r.note("Forget")
	r.TypedRateLimitingInterface.Forget(key)
}

func (r *recorder) AddRateLimited(key string) {
	r.note("AddRateLimited")
	r.TypedRateLimitingInterface.AddRateLimited(key)
}

func (r *recorder) Done(key string) {
	r.note("Done")
	r.TypedRateLimitingInterface.Done(key)
}

// canonical runs the controller with a key whose pod is gone, and with one whose first write is refused. It returns a
// line for each turn of the loop.
func canonical(t *testing.T) (lines []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		pods := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{
			cache.NamespaceIndex: cache.MetaNamespaceIndexFunc,
		})
		if err := pods.Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}); err != nil {
			t.Fatal(err)
		}
		queue := &recorder{TypedRateLimitingInterface: clientqueue.NewTypedRateLimitingQueue(
			clientqueue.DefaultTypedControllerRateLimiter[string]()), began: time.Now()}
		attempts := 0
		c := &controller{pods: corelisters.NewPodLister(pods), queue: queue}
		c.update = func(_ context.Context, pod *corev1.Pod) error {
			if attempts++; attempts == 1 {
				queue.note("the write is refused")
				return apierrors.NewConflict(corev1.Resource("pods"), pod.Name, errors.New("somebody was faster"))
			}
			queue.note("the write succeeds")
			return pods.Update(pod)
		}
		go c.runWorker(t.Context())
		queue.Add("shop/gone")
		queue.Add("shop/web")
		time.Sleep(time.Minute)
		queue.Add("shop/web") // The event of the write.
		synctest.Wait()
		queue.ShutDown()
		synctest.Wait()
		lines = queue.lines
	})
	return lines
}

// TestChapter08Canonical shows what the loop of the whole world does with four keys.
func TestChapter08Canonical(t *testing.T) {
	lines := canonical(t)
	if len(lines) != 4 || !strings.Contains(lines[1], "AddRateLimited, Done") {
		t.Errorf("the loop did %q", lines)
	}
	book.Trace(t, page, strings.Join(lines, "\n"))
}

// after has a key fail twice, then be answered as given, and then fail again. It returns how long the key waits after
// the answer, and whether the answer ended the backoff. A negative wait means that it does not run again.
func after(t *testing.T, answer func() (reconcile.Result, error)) (wait time.Duration, ends bool) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var runs []time.Time
		reconcileKey := func(context.Context, string) (reconcile.Result, error) {
			switch runs = append(runs, time.Now()); len(runs) {
			case 1, 2, 4:
				return reconcile.Result{}, errBroken
			case 3:
				return answer()
			}
			return reconcile.Result{}, nil
		}
		run(t, reconcileKey, reconcile.Options[string]{}, func(_ *diary, c *reconcile.Controller[string]) {
			c.Enqueue("a")
			time.Sleep(time.Hour)
			synctest.Wait()
			if wait = -1; len(runs) == 3 {
				c.Enqueue("a")
				time.Sleep(time.Hour)
				synctest.Wait()
			} else {
				wait = runs[3].Sub(runs[2])
			}
			ends = runs[4].Sub(runs[3]) == 5*time.Millisecond
		})
	})
	return wait, ends
}

// TestChapter08Loop draws the loop: the calls of the canonical one, and what ours makes of further answers.
func TestChapter08Loop(t *testing.T) {
	calls := func(line int) string { // those between the answer and Done
		parts := strings.Split(canonical(t)[line], ", ")
		return parts[len(parts)-2]
	}
	type row struct {
		answer, effect string
		class          figure.Class
	}
	rows := []row{
		{"nil", calls(2), figure.Good},
		{"an error", calls(1) + ": 5ms, 10ms …", figure.Bad},
	}
	for _, a := range []struct {
		name string
		give func() (reconcile.Result, error)
	}{
		{"RequeueAfter", func() (reconcile.Result, error) { return reconcile.Result{RequeueAfter: time.Minute}, nil }},
		{"ErrStale", func() (reconcile.Result, error) { return reconcile.Result{}, writes.ErrStale }},
		{"Terminal(err)", func() (reconcile.Result, error) {
			return reconcile.Result{}, reconcile.Terminal(errBroken)
		}},
	} {
		wait, ends := after(t, a.give)
		effect := "report it, not again"
		if wait >= 0 {
			effect = "again after " + strings.TrimSuffix(wait.String(), "0s")
		}
		if ends {
			effect = "Forget, " + effect
		}
		rows = append(rows, row{a.name, effect, figure.Plain})
	}
	book.Figure(t, "08-loop", drawLoop(func(yield func(string, string, figure.Class)) {
		for _, r := range rows {
			yield(r.answer, r.effect, r.class)
		}
	}, len(rows)))
}

// drawLoop draws the way of a key: out of the queue, through syncHandler, by one of the answers, and back.
func drawLoop(answers func(yield func(answer, effect string, class figure.Class)), n int) *figure.Figure {
	const top, pitch, height = 46.0, 44.0, 32.0
	middle := top + (pitch*float64(n-1)+height)/2
	bottom := top + pitch*float64(n) + 18
	f := figure.New("The way of a key around the loop",
		"Get takes a key out of the work queue. syncHandler is called with it. Its answer decides between Forget and "+
			"AddRateLimited in every controller, and between further cases in ours. Done ends each turn.",
		figure.Width, bottom+34)
	f.Frame(158, 14, 546, bottom-2, "processNextWorkItem")
	f.Box(16, middle-29, 112, 58, figure.Plain, "work queue", "keys")
	f.Arrow(figure.Plain, figure.Point{X: 132, Y: middle}, figure.Point{X: 196, Y: middle})
	f.Middle(164, middle-9, "Get", "code", figure.Plain)
	f.Box(200, middle-29, 120, 58, figure.Lit, "syncHandler", "for one key")
	at := 0
	answers(func(answer, effect string, class figure.Class) {
		y := top + pitch*float64(at)
		at++
		f.Arrow(class, figure.Point{X: 324, Y: middle}, figure.Point{X: 350, Y: middle},
			figure.Point{X: 350, Y: y + height/2}, figure.Point{X: 372, Y: y + height/2})
		f.Rect(376, y, 112, height, class)
		f.Middle(432, y+20, answer, "code", class)
		f.Arrow(class, figure.Point{X: 492, Y: y + height/2}, figure.Point{X: 512, Y: y + height/2})
		f.Text(518, y+20, effect, "small", class)
	})
	f.Arrow(figure.Plain, figure.Point{X: 600, Y: bottom - 14}, figure.Point{X: 600, Y: bottom},
		figure.Point{X: 72, Y: bottom}, figure.Point{X: 72, Y: middle + 33})
	f.Middle(380, bottom-7, "Done, after every answer", "small", figure.Plain)
	return f
}
