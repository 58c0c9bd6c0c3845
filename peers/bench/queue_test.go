package bench

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	peer "k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	"github.com/flyball-dev/flyball/workqueue"
	"github.com/flyball-dev/flyball/workqueue/metrics"
)

// queue is what the benchmarks need of each system.
type queue interface {
	Add(key string)
	AddAfter(key string, d time.Duration)
	// Get returns false when the queue is shut down.
	Get() (string, bool)
	Done(key string)
	ShutDown()
}

type flyball struct{ *workqueue.Queue[string] }

func (f flyball) Get() (string, bool) {
	item, err := f.Queue.Get(context.Background())
	return item.Key, err == nil
}

type clientGo struct {
	peer.TypedDelayingInterface[string]
}

func (c clientGo) Get() (string, bool) {
	key, shutdown := c.TypedDelayingInterface.Get()
	return key, !shutdown
}

var systems = []struct {
	name string
	new  func() queue
}{
	{"flyball", func() queue { return flyball{workqueue.New(workqueue.Options[string]{})} }},
	{"flyball-time", func() queue { return flyball{workqueue.New(workqueue.Options[string]{QueueingTime: true})} }},
	{"clientgo", func() queue { return clientGo{peer.NewTypedDelayingQueue[string]()} }},
	{"controller-runtime", func() queue { return clientGo{priorityqueue.New[string]("bench")} }},
}

func makeKeys(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("namespace-%d/name-%d", i%100, i)
	}
	return keys
}

// makeRequests makes keys of the kind that controllers have: a namespace and a name.
func makeRequests(n int) []types.NamespacedName {
	keys := make([]types.NamespacedName, n)
	for i := range keys {
		keys[i] = types.NamespacedName{Namespace: fmt.Sprintf("namespace-%d", i%100), Name: fmt.Sprintf("name-%d", i)}
	}
	return keys
}

// variant is one queue to be measured. A cycle adds, gets and finishes a key, as a program that uses the queue would
// write it.
type variant[K comparable] struct {
	name string
	new  func() (cycle func(key K), stop func())
}

func variants[K comparable]() []variant[K] {
	own := func(o func() workqueue.Options[K]) func() (func(K), func()) {
		return func() (func(K), func()) {
			q, ctx := workqueue.New(o()), context.Background()
			return func(key K) {
				q.Add(key)
				got, _ := q.Get(ctx)
				q.Done(got.Key)
			}, q.ShutDown
		}
	}
	theirs := func(config func() peer.TypedQueueConfig[K]) func() (func(K), func()) {
		return func() (func(K), func()) {
			q := peer.NewTypedWithConfig(config())
			return func(key K) {
				q.Add(key)
				got, _ := q.Get()
				q.Done(got)
			}, q.ShutDown
		}
	}
	return []variant[K]{
		{"clientgo", theirs(func() peer.TypedQueueConfig[K] { return peer.TypedQueueConfig[K]{} })},
		{"flyball", own(func() workqueue.Options[K] { return workqueue.Options[K]{} })},
		{"flyball-time", own(func() workqueue.Options[K] { return workqueue.Options[K]{QueueingTime: true} })},
		{"controller-runtime", func() (func(K), func()) { // it has metrics by default
			q := priorityqueue.New[K]("bench")
			return func(key K) {
				q.Add(key)
				got, _ := q.Get()
				q.Done(got)
			}, q.ShutDown
		}},
		{"clientgo-metrics", theirs(func() peer.TypedQueueConfig[K] {
			return peer.TypedQueueConfig[K]{Name: "q", MetricsProvider: newPeerMetrics()}
		})},
		{"flyball-metrics", own(func() workqueue.Options[K] {
			return workqueue.Options[K]{Name: "q", Metrics: metrics.New()}
		})},
		{"flyball-metrics-causes", func() (func(K), func()) {
			q, ctx := workqueue.New(workqueue.Options[K]{Name: "q", Metrics: metrics.New()}), context.Background()
			cause := workqueue.Cause{Source: "Pod", Event: "Update", Object: "default/web-x", ResourceVersion: "4711"}
			return func(key K) {
				q.AddWithCause(key, cause)
				got, _ := q.Get(ctx)
				q.Done(got.Key)
			}, q.ShutDown
		}},
	}
}

// BenchmarkQueueCycle adds, gets and finishes one key after the other, in one goroutine.
func BenchmarkQueueCycle(b *testing.B) {
	for _, n := range []int{1, 100, 10_000, 1_000_000} {
		b.Run(fmt.Sprintf("key=string/keys=%d", n), func(b *testing.B) { benchmarkCycle(b, makeKeys(n)) })
		b.Run(fmt.Sprintf("key=request/keys=%d", n), func(b *testing.B) { benchmarkCycle(b, makeRequests(n)) })
	}
}

func benchmarkCycle[K comparable](b *testing.B, keys []K) {
	for _, v := range variants[K]() {
		b.Run(v.name, func(b *testing.B) {
			cycle, stop := v.new()
			defer stop()
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				cycle(keys[i])
				if i++; i == len(keys) {
					i = 0
				}
			}
		})
	}
}

// BenchmarkQueueWorkers has one producer and many workers with nothing to do. It measures how long it takes to wake
// them.
func BenchmarkQueueWorkers(b *testing.B) {
	for _, workers := range []int{1, 4, 16} {
		for _, s := range systems {
			b.Run(fmt.Sprintf("workers=%d/%s", workers, s.name), func(b *testing.B) {
				q, keys := s.new(), makeKeys(b.N)
				b.ReportAllocs()
				b.ResetTimer()
				produce(q, keys, workers)
			})
		}
	}
}

// BenchmarkQueueAddAfter delays a million distinct keys. It reports memory in two ways: allocated per key, and what is
// left per key after garbage collection; the keys themselves are not counted.
func BenchmarkQueueAddAfter(b *testing.B) {
	const n = 1_000_000
	keys := makeKeys(n)
	for _, s := range systems {
		b.Run(s.name, func(b *testing.B) {
			var retained, allocated uint64
			var took time.Duration
			for range b.N {
				q := s.new()
				before := heap()
				began := time.Now()
				for i, key := range keys {
					q.AddAfter(key, time.Hour+time.Duration(i*7919%n)*time.Millisecond)
				}
				took += time.Since(began)
				after := heap()
				retained += after.HeapAlloc - before.HeapAlloc
				allocated += after.TotalAlloc - before.TotalAlloc
				q.ShutDown()
			}
			calls := uint64(b.N) * n
			b.ReportMetric(float64(took.Nanoseconds())/float64(calls), "ns/key")
			b.ReportMetric(float64(retained)/float64(calls), "B-kept/key")
			b.ReportMetric(float64(allocated)/float64(calls), "B-allocated/key")
		})
	}
}

func heap() runtime.MemStats {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m
}
