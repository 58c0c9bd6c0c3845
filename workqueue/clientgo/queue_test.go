package clientgo_test

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	peer "k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	workqueue "github.com/flyball-dev/flyball/workqueue/clientgo"
)

// The queues of this package implement client-go's interfaces and take client-go's configurations.
var (
	_ peer.TypedInterface[string]             = workqueue.NewTyped[string]()
	_ peer.TypedDelayingInterface[string]     = workqueue.NewTypedDelayingQueue[string]()
	_ peer.TypedRateLimitingInterface[string] = workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.DefaultTypedControllerRateLimiter[string](), peer.TypedRateLimitingQueueConfig[string]{})
)

// Both differ from client-go v0.37.2 on purpose; docs/divergence.md has the reasons.
func TestDrainWaitsForQueuedKeysAndReleasesAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.NewTyped[string]()
		q.Add("a")
		q.Add("b")
		var released atomic.Int32
		for range 2 {
			go func() {
				q.ShutDownWithDrain()
				released.Add(1)
			}()
		}
		synctest.Wait()
		for range 2 {
			if released.Load() != 0 {
				t.Fatal("released with keys queued")
			}
			key, _ := q.Get()
			q.Done(key)
		}
		synctest.Wait()
		if released.Load() != 2 {
			t.Errorf("%d of 2 released", released.Load())
		}
	})
}

func TestShutDownReleasesDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.NewTyped[string]()
		q.Add("a")
		released := make(chan struct{})
		go func() {
			q.ShutDownWithDrain()
			close(released)
		}()
		synctest.Wait()
		q.ShutDown()
		<-released
		if !q.ShuttingDown() {
			t.Error("not shutting down")
		}
	})
}

func TestStrayDoneIsIgnored(t *testing.T) {
	q := workqueue.NewTyped[string]()
	q.Add("a")
	q.Done("a")
	if q.Len() != 1 {
		t.Errorf("Len: got %d, want 1", q.Len())
	}
}

// Source: client-go v0.37.2 util/workqueue/delaying_queue.go: Add does not touch waitingEntryByData.
func TestAddLeavesAddAfterAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Second, time.Minute),
		)
		defer q.ShutDown()
		q.AddRateLimited("a")
		q.Add("a")
		key, _ := q.Get()
		q.Done(key)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if q.Len() != 1 || q.NumRequeues("a") != 1 {
			t.Errorf("got %d ready, %d requeues", q.Len(), q.NumRequeues("a"))
		}
		q.Forget("a")
		q.ShutDown()
		q.AddRateLimited("a")
		if q.NumRequeues("a") != 0 {
			t.Error("a queue that is shut down charged the limiter")
		}
	})
}

func TestDelaysOverAForeignQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := peer.NewTyped[string]()
		q := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[string]{Queue: inner})
		q.AddAfter("later", 2*time.Second)
		q.AddAfter("sooner", time.Second)
		q.AddAfter("now", 0)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		var got []string
		for inner.Len() > 0 {
			key, _ := inner.Get()
			inner.Done(key)
			got = append(got, key)
		}
		if !slices.Equal(got, []string{"now", "sooner", "later"}) {
			t.Errorf("got %q", got)
		}
		q.AddAfter("never", time.Second)
		q.ShutDownWithDrain()
		q.ShutDown()
		q.AddAfter("never", time.Second)
	})
}

// otherStorage is a storage of a program's own.
type otherStorage struct{ peer.Queue[string] }

func TestOtherClocksAndStoragesAreRefused(t *testing.T) {
	workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[string]{Clock: clock.RealClock{}})
	type otherClock struct{ clock.RealClock }
	for _, config := range []workqueue.TypedQueueConfig[string]{{Clock: otherClock{}}, {Queue: otherStorage{}}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("accepted: %+v", config)
				}
			}()
			workqueue.NewTypedWithConfig(config)
		}()
	}
}

// recorder is a MetricsProvider whose metrics are numbers.
type recorder map[string]*number

type number struct{ value float64 }

func (n *number) Inc()              { n.value++ }
func (n *number) Dec()              { n.value-- }
func (n *number) Set(v float64)     { n.value = v }
func (n *number) Observe(v float64) { n.value += v }

func (r recorder) make(name string) *number {
	r[name] = &number{}
	return r[name]
}

func (r recorder) NewDepthMetric(string) peer.GaugeMetric            { return r.make("depth") }
func (r recorder) NewAddsMetric(string) peer.CounterMetric           { return r.make("adds") }
func (r recorder) NewLatencyMetric(string) peer.HistogramMetric      { return r.make("latency") }
func (r recorder) NewWorkDurationMetric(string) peer.HistogramMetric { return r.make("work") }
func (r recorder) NewRetriesMetric(string) peer.CounterMetric        { return r.make("retries") }
func (r recorder) NewUnfinishedWorkSecondsMetric(string) peer.SettableGaugeMetric {
	return r.make("unfinished")
}

func (r recorder) NewLongestRunningProcessorSecondsMetric(string) peer.SettableGaugeMetric {
	return r.make("longest")
}

// Source: client-go v0.37.2 util/workqueue/metrics.go.
func TestMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		metrics := recorder{}
		q := workqueue.NewTypedRateLimitingQueueWithConfig(workqueue.DefaultTypedControllerRateLimiter[string](),
			workqueue.TypedRateLimitingQueueConfig[string]{Name: "q", MetricsProvider: metrics})
		for _, key := range []string{"a", "b", "a"} {
			q.Add(key)
		}
		q.AddAfter("c", 3*time.Second)
		time.Sleep(2 * time.Second)
		q.Get()
		time.Sleep(4 * time.Second)
		synctest.Wait()
		check(t, metrics, "depth 2 adds 3 latency 2 work 0 unfinished 4 longest 4 retries 1")
		q.Done("a")
		q.ShutDown()
		check(t, metrics, "depth 2 adds 3 latency 2 work 4 unfinished 4 longest 4 retries 1")
	})
}

func check(t *testing.T, metrics recorder, want string) {
	t.Helper()
	got := ""
	for i, name := range []string{"depth", "adds", "latency", "work", "unfinished", "longest", "retries"} {
		got += fmt.Sprintf("%s%s %v", []string{"", " "}[min(i, 1)], name, metrics[name].value)
	}
	if got != want {
		t.Errorf("metrics:\n got %s\nwant %s", got, want)
	}
}

func TestParallelizeUntil(t *testing.T) {
	for _, pieces := range []int{0, 1, 7, 1000} {
		for _, chunk := range []int{0, 1, 10, 2000} {
			done := make([]atomic.Int32, pieces)
			workqueue.ParallelizeUntil(t.Context(), 5, pieces, func(i int) { done[i].Add(1) },
				peer.WithChunkSize(chunk))
			for i := range done {
				if done[i].Load() != 1 {
					t.Fatalf("%d pieces in chunks of %d: piece %d done %d times", pieces, chunk, i, done[i].Load())
				}
			}
		}
	}
}

func TestLimiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := workqueue.NewTypedWithMaxWaitRateLimiter(workqueue.NewTypedMaxOfRateLimiter(
			workqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Second, time.Minute),
			workqueue.NewTypedItemFastSlowRateLimiter[string](time.Second, 3*time.Second, 1),
		), 2*time.Second)
		q := workqueue.NewTypedRateLimitingQueueWithConfig(limiter, peer.TypedRateLimitingQueueConfig[string]{
			DelayingQueue: workqueue.NewTypedDelayingQueueWithConfig(
				peer.TypedDelayingQueueConfig[string]{Name: "q"}),
		})
		defer q.ShutDown()
		q.AddRateLimited("a")
		time.Sleep(time.Second)
		synctest.Wait()
		if q.Len() != 1 || q.NumRequeues("a") != 1 {
			t.Errorf("got %d ready, %d requeues", q.Len(), q.NumRequeues("a"))
		}
		if wait := limiter.When("a"); wait != 2*time.Second {
			t.Errorf("second failure: got %v, want 2s", wait)
		}
		zero := workqueue.NewTypedItemExponentialFailureRateLimiter[string](0, time.Minute)
		if wait := zero.When("a"); wait != 0 {
			t.Errorf("base delay 0: got %v", wait)
		}
	})
}
