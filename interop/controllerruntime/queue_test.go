package controllerruntime_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	peer "k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/flyball-dev/flyball/internal/closed"
	"github.com/flyball-dev/flyball/interop/controllerruntime"
)

// bothQueues runs test with controller-runtime's priority queue and with ours.
func bothQueues(t *testing.T, test func(t *testing.T, ours bool, q priorityqueue.PriorityQueue[string])) {
	t.Helper()
	limiter := func() peer.TypedRateLimiter[string] {
		return peer.NewTypedItemExponentialFailureRateLimiter[string](time.Second, time.Hour)
	}
	for name, make := range map[string]func() priorityqueue.PriorityQueue[string]{
		"controller-runtime": func() priorityqueue.PriorityQueue[string] {
			return priorityqueue.New("", func(o *priorityqueue.Opts[string]) { o.RateLimiter = limiter() })
		},
		"flyball": func() priorityqueue.PriorityQueue[string] {
			return controllerruntime.NewQueue("", limiter()).(priorityqueue.PriorityQueue[string])
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := make()
				test(t, name == "flyball", q)
				if !q.ShuttingDown() {
					q.ShutDown()
				}
				synctest.Wait()
			})
		})
	}
}

// take takes what is ready now.
func take(q priorityqueue.PriorityQueue[string]) (keys []string) {
	synctest.Wait()
	for q.Len() > 0 {
		key, _, _ := q.GetWithPriority()
		q.Done(key)
		keys = append(keys, key)
		synctest.Wait()
	}
	return keys
}

func TestQueueOrder(t *testing.T) {
	bothQueues(t, func(t *testing.T, _ bool, q priorityqueue.PriorityQueue[string]) {
		q.AddWithOpts(priorityqueue.AddOpts{Priority: new(-100)}, "low1", "low2")
		q.Add("normal")
		q.AddWithOpts(priorityqueue.AddOpts{Priority: new(5)}, "high")
		q.AddWithOpts(priorityqueue.AddOpts{Priority: new(6)}, "low2")
		q.AddWithOpts(priorityqueue.AddOpts{Priority: new(-1)}, "high")
		if got, want := take(q), []string{"low2", "high", "normal", "low1"}; !slices.Equal(got, want) {
			t.Errorf("order %v, want %v", got, want)
		}
		q.AddWithOpts(priorityqueue.AddOpts{Priority: new(7)}, "kept")
		synctest.Wait()
		key, priority, shutdown := q.GetWithPriority()
		if key != "kept" || priority != 7 || shutdown {
			t.Errorf("got %s at %d, %v", key, priority, shutdown)
		}
		q.AddWithOpts(priorityqueue.AddOpts{RateLimited: true, Priority: &priority}, key)
		q.Done(key)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if _, priority, _ := q.GetWithPriority(); priority != 7 || q.NumRequeues(key) != 1 {
			t.Errorf("after a retry: priority %d, %d requeues", priority, q.NumRequeues(key))
		}
		q.Done(key)
		q.Forget(key)
		if q.NumRequeues(key) != 0 {
			t.Error("not forgotten")
		}
	})
}

func TestQueueDelays(t *testing.T) {
	bothQueues(t, func(t *testing.T, _ bool, q priorityqueue.PriorityQueue[string]) {
		q.AddAfter("early", time.Minute)
		q.AddAfter("early", time.Second)
		q.AddAfter("early", time.Hour)
		q.AddAfter("now", time.Minute)
		q.Add("now")
		q.AddWithOpts(priorityqueue.AddOpts{After: time.Hour, RateLimited: true}, "limited") // a second, by the limiter
		q.AddRateLimited("retried")
		if got := take(q); !slices.Equal(got, []string{"now"}) {
			t.Errorf("at once: %v", got)
		}
		time.Sleep(1500 * time.Millisecond)
		if got := take(q); len(got) != 3 {
			t.Errorf("after a second: %v", got)
		}
		time.Sleep(2 * time.Hour)
		if got := take(q); got != nil {
			t.Errorf("after all: %v", got)
		}
	})
}

func TestQueueOneWorkerForAKey(t *testing.T) {
	bothQueues(t, func(t *testing.T, _ bool, q priorityqueue.PriorityQueue[string]) {
		q.Add("a")
		synctest.Wait()
		key, _ := q.Get()
		q.Add(key)
		got := make(chan string, 1)
		go func() {
			key, _ := q.Get()
			got <- key
		}()
		synctest.Wait()
		if len(got) != 0 || q.Len() != 1 {
			t.Errorf("handed out twice at once, or not counted: length %d", q.Len())
		}
		q.Done(key)
		synctest.Wait()
		if len(got) != 1 {
			t.Error("not handed out again")
		}
	})
}

// TestQueueShutDown: waiting workers return, and queued keys are dropped.
func TestQueueShutDown(t *testing.T) {
	bothQueues(t, func(t *testing.T, ours bool, q priorityqueue.PriorityQueue[string]) {
		released := make(chan bool, 1)
		go func() {
			_, shutdown := q.Get()
			released <- shutdown
		}()
		q.AddAfter("later", time.Hour)
		synctest.Wait()
		q.ShutDown()
		if !<-released || !q.ShuttingDown() {
			t.Error("not shut down")
		}
		q.Add("x")
		if key, _, shutdown := q.GetWithPriority(); !shutdown {
			t.Errorf("got %s after the shutdown", key)
		}
		defer func() {
			if r := recover(); (r == nil) != ours {
				t.Errorf("%s: a second shutdown of ours=%v panics: %v", changed, ours, r)
			}
		}()
		q.ShutDown()
	})
}

// TestQueueDrain: our drain waits for work in flight, as the name suggests. controller-runtime's does not.
func TestQueueDrain(t *testing.T) {
	bothQueues(t, func(t *testing.T, ours bool, q priorityqueue.PriorityQueue[string]) {
		q.Add("a")
		key, _ := q.Get()
		q.Add("b")
		synctest.Wait()
		done := make(chan struct{})
		go func() {
			q.ShutDownWithDrain()
			close(done)
		}()
		synctest.Wait()
		if closed.Is(done) == ours {
			t.Errorf("%s: drained while a key is in work: %v", changed, closed.Is(done))
		}
		q.Done(key)
		if ours {
			key, _ = q.Get() // What was ready is served.
			q.Done(key)
		}
		<-done
		if !q.ShuttingDown() {
			t.Error("not shut down")
		}
	})
}

// TestQueueStarvation: a key of the lowest priority is served despite a stream of keys with a higher one: after 100
// steps of 100 ms.
func TestQueueStarvation(t *testing.T) {
	bothQueues(t, func(t *testing.T, ours bool, q priorityqueue.PriorityQueue[string]) {
		q.AddWithOpts(priorityqueue.AddOpts{Priority: new(-100)}, "low")
		begin, served := time.Now(), time.Duration(0)
		for i := 0; i < 20_000 && served == 0; i++ {
			q.Add("hot" + string(rune('a'+i%2))) // There is always one more.
			synctest.Wait()
			key, _ := q.Get()
			time.Sleep(time.Millisecond)
			q.Add("hot" + string(rune('a'+(i+1)%2)))
			q.Done(key)
			if key == "low" {
				served = time.Since(begin)
			}
		}
		if ours && (served == 0 || served > 11*time.Second) {
			t.Errorf("served after %v", served)
		}
		if !ours && served != 0 {
			t.Errorf("%s: a low priority was served after %v", changed, served)
		}
	})
}

// TestQueueMetrics: our queue reports controller-runtime's registered metrics, with the values of its own queue.
func TestQueueMetrics(t *testing.T) {
	for make, newQueue := range map[string]func(name string) priorityqueue.PriorityQueue[string]{
		"controller-runtime": func(name string) priorityqueue.PriorityQueue[string] {
			return priorityqueue.New[string](name)
		},
		"flyball": func(name string) priorityqueue.PriorityQueue[string] {
			return controllerruntime.NewQueueWithOrder[string](name, nil, nil)
		},
	} {
		t.Run(make, func(t *testing.T) {
			name := fmt.Sprintf("%s-%d", make, time.Now().UnixNano()) // The registry is the process's.
			q := newQueue(name)
			q.Add("a")
			key, _ := q.Get()
			q.Done(key)
			q.AddAfter(key, time.Hour)
			q.Add("b")
			if q.Len() != 1 { // Which has controller-runtime's queue look at what was added.
				t.Errorf("length %d", q.Len())
			}
			q.ShutDown()
			got := gathered(t, name)
			for name, want := range map[string]float64{
				"depth": 1, "adds_total": 2, "retries_total": 1, "queue_duration_seconds": 1,
				"work_duration_seconds":   1,
				"unfinished_work_seconds": 0, "longest_running_processor_seconds": 0,
			} {
				if v, ok := got[name]; !ok || v != want {
					t.Errorf("%s: %v (%v), want %v", name, v, ok, want)
				}
			}
		})
	}
}

// gathered returns the metrics of a queue: values of gauges and counters, and the number of observations of histograms.
func gathered(t *testing.T, queue string) map[string]float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.Metric {
			if len(m.Label) > 1 && m.Label[0].GetValue() == queue {
				got[strings.TrimPrefix(f.GetName(), "workqueue_")] += m.GetGauge().GetValue() +
					m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return got
}
