package bench

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	peer "k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	"github.com/flyball-dev/flyball/workqueue"
)

// contended is a queue that others keep busy while one key wants to be served.
type contended struct {
	name string
	new  func() contendedQueue
}

type contendedQueue struct {
	// add adds a key of the others; addOne the key that is watched.
	add, addOne func(key string)
	get         func() (string, bool)
	done        func(key string)
	stop        func()
}

func contendedFlyball(order func() *workqueue.Order[string], priority int) func() contendedQueue {
	return func() contendedQueue {
		q := workqueue.New(workqueue.Options[string]{Order: order()})
		return contendedQueue{
			q.Add, func(key string) { q.AddWith(key, workqueue.AddOptions{Priority: &priority}) },
			func() (string, bool) {
				item, err := q.Get(context.Background())
				return item.Key, err == nil
			}, q.Done, q.ShutDown,
		}
	}
}

func contendedPeer(q peer.TypedInterface[string], addOne func(string)) contendedQueue {
	return contendedQueue{q.Add, addOne, func() (string, bool) {
		key, shutdown := q.Get()
		return key, !shutdown
	}, q.Done, q.ShutDown}
}

func contendedControllerRuntime(priority int) func() contendedQueue {
	return func() contendedQueue {
		q := priorityqueue.New[string]("bench")
		return contendedPeer(q, func(key string) { q.AddWithOpts(priorityqueue.AddOpts{Priority: &priority}, key) })
	}
}

// contendedQueues are without priorities, unless their names say something else.
var contendedQueues = []contended{
	{"client-go", func() contendedQueue {
		q := peer.NewTyped[string]()
		return contendedPeer(q, q.Add)
	}},
	{"Flyball", contendedFlyball(func() *workqueue.Order[string] { return nil }, 0)},
	{"Flyball, fair by namespace", contendedFlyball(func() *workqueue.Order[string] {
		return workqueue.NewFairOrder(workqueue.FairOptions[string]{Group: func(key string) string {
			group, _, _ := strings.Cut(key, "/")
			return group
		}})
	}, 0)},
	{"Flyball, priority 10", contendedFlyball(func() *workqueue.Order[string] {
		return workqueue.NewPriorityOrder[string](workqueue.PriorityOptions{})
	}, 10)},
	{"controller-runtime", contendedControllerRuntime(0)},
	{"controller-runtime, priority 10", contendedControllerRuntime(10)},
}

// BenchmarkQueueWait measures how long one key waits behind a storm of 100,000 others, and beside 100 hot keys that are
// added again as soon as they are done. One worker takes 1 µs for a key. An operation is one such wait.
func BenchmarkQueueWait(b *testing.B) {
	b.Run("behind 100,000 keys", func(b *testing.B) { waits(b, 100_000, false) })
	b.Run("beside 100 hot keys", func(b *testing.B) { waits(b, 100, true) })
}

func waits(b *testing.B, others int, again bool) {
	for _, q := range contendedQueues {
		b.Run(q.name, func(b *testing.B) {
			took := waitBeside(q.new(), b.N, others, again)
			slices.Sort(took)
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(took[b.N/2].Nanoseconds()), "p50-ns")
			b.ReportMetric(float64(took[b.N-1].Nanoseconds()), "longest-ns")
		})
	}
}

// waitBeside adds one key again and again while others keep the queue busy, and returns how long it waited each time.
func waitBeside(q contendedQueue, times, others int, again bool) (waits []time.Duration) {
	const one = "calm/one"
	served := make(chan time.Time, 1)
	var storm atomic.Int64 // The keys of the storm that are not done.
	var worker sync.WaitGroup
	worker.Go(func() {
		for {
			key, ok := q.get()
			if !ok {
				return
			}
			for began := time.Now(); time.Since(began) < time.Microsecond; {
			}
			if key == one {
				served <- time.Now()
			}
			q.done(key)
			switch {
			case key == one:
			case again:
				q.add(key)
			default:
				storm.Add(-1)
			}
		}
	})
	keys := makeKeys(others)
	for i := range times {
		if i == 0 || !again {
			for storm.Load() > 0 {
				time.Sleep(time.Millisecond)
			}
			storm.Add(int64(others))
			for _, key := range keys {
				q.add("storm/" + key.Name)
			}
		}
		asked := time.Now()
		q.addOne(one)
		waits = append(waits, (<-served).Sub(asked))
	}
	q.stop()
	worker.Wait()
	return waits
}
