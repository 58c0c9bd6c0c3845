package manager_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/localapi/gate"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/reconcile/handler"
	"github.com/flyball-dev/flyball/reconcile/source"
)

// TestTwoControllersOfOneManager: both reconcile, and neither waits for the other.
func TestTwoControllersOfOneManager(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		m := w.manager(t, manager.Options{})
		var first, second atomic.Int64
		free := make(chan struct{})
		onConfigMaps(t, m, "first", func(context.Context, reconcile.Request) (reconcile.Result, error) {
			first.Add(1)
			<-free
			return reconcile.Result{}, nil
		})
		onConfigMaps(t, m, "second", func(context.Context, reconcile.Request) (reconcile.Result, error) {
			second.Add(1)
			return reconcile.Result{}, nil
		})
		w.create(t, m, "one")
		w.create(t, m, "two")
		l := live(t, m)
		if first.Load() != 1 || second.Load() < 2 || m.InFlight() != 1 {
			t.Errorf("reconciled %d and %d times, %d in flight", first.Load(), second.Load(), m.InFlight())
		}
		close(free)
		l.mustEnd()
	})
}

// TestStopUnderAHundredCreates stops the manager while a hundred reconciles are about to write. The client, the
// transport and the server must still let each write pass, because the drain waits for these reconciles. No further
// reconcile begins, and the counters match the writes.
func TestStopUnderAHundredCreates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const creates = 100
		w := newWorld(t)
		m := w.manager(t, manager.Options{})
		maps, err := informer.For[*corev1.ConfigMap](m.Informers())
		if err != nil {
			t.Fatal(err)
		}
		var stopped atomic.Bool
		c := reconcile.New("writers", reconcile.Func[int](func(ctx context.Context, _ int) (reconcile.Result, error) {
			if stopped.Load() {
				t.Error("a reconcile begins after the stop")
			}
			time.Sleep(time.Second)
			made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "made-"}}
			_, err := clientset(m).CoreV1().ConfigMaps("default").Create(ctx, made, metav1.CreateOptions{})
			return reconcile.Result{}, err
		}), reconcile.Options[int]{Workers: creates})
		further := handler.EnqueueMapped(
			func(_ context.Context, cm *corev1.ConfigMap) []int { return []int{len(cm.UID) + 1<<20} },
		)
		if err := c.Watch(source.Kind(maps, further)); err != nil {
			t.Fatal(err)
		}
		for i := range 2 * creates {
			c.Enqueue(i)
		}
		if err := m.Add(c); err != nil {
			t.Fatal(err)
		}
		w.refuse(func(r *gate.Request) gate.Verdict { // a slow server
			if r.Verb == "create" {
				time.Sleep(100 * time.Millisecond)
			}
			return gate.Verdict{}
		})
		l := live(t, m)
		if n := m.InFlight(); n != creates {
			t.Fatalf("%d in flight, want %d", n, creates)
		}
		l.stop()
		synctest.Wait()
		stopped.Store(true)
		if err := <-l.done; err != nil {
			t.Error(err)
		}
		made := 0
		for _, line := range w.writes("configmaps") {
			if strings.HasPrefix(line, "create configmaps default/made-") && strings.HasSuffix(line, " 201") {
				made++
			}
		}
		if s := c.Stats(); made != creates || s.Syncs != creates || s.Errors != 0 || s.InFlight != 0 ||
			s.Peak != creates || m.InFlight() != 0 {
			t.Errorf("%d created, %+v", made, s)
		}
		if left := c.Left(1 << 20); len(left) < creates {
			t.Errorf("%d keys are named as left, want those that were queued: %d, and that of the events", len(left),
				creates)
		}
	})
}
