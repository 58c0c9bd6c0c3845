package bench

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	peer "k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	"github.com/flyball-dev/flyball/workqueue"
	"github.com/flyball-dev/flyball/workqueue/metrics"
)

// makeKeys makes keys of the kind that controllers have: a namespace and a name.
func makeKeys(n int) []types.NamespacedName {
	keys := make([]types.NamespacedName, n)
	for i := range keys {
		keys[i] = types.NamespacedName{Namespace: fmt.Sprintf("namespace-%d", i%100), Name: fmt.Sprintf("name-%d", i)}
	}
	return keys
}

// queue is what the benchmarks need of each system.
type queue interface {
	Add(key types.NamespacedName)
	AddAfter(key types.NamespacedName, d time.Duration)
	// Get returns false when the queue is shut down.
	Get() (types.NamespacedName, bool)
	Done(key types.NamespacedName)
	ShutDown()
}

type flyball struct {
	*workqueue.Queue[types.NamespacedName]
}

func (f flyball) Get() (types.NamespacedName, bool) {
	item, err := f.Queue.Get(context.Background())
	return item.Key, err == nil
}

func newFlyball(o workqueue.Options[types.NamespacedName]) queue { return flyball{workqueue.New(o)} }

// flyballCauses gives each key a cause.
type flyballCauses struct{ flyball }

func (f flyballCauses) Add(key types.NamespacedName) {
	f.AddWithCause(key,
		workqueue.Cause{Source: "Pod", Event: "Update", Object: "default/web-x", ResourceVersion: "4711"})
}

// peerQueue is a queue of client-go or controller-runtime.
type peerQueue struct {
	peer.TypedDelayingInterface[types.NamespacedName]
}

func (p peerQueue) Get() (types.NamespacedName, bool) {
	key, shutdown := p.TypedDelayingInterface.Get()
	return key, !shutdown
}

// newClientGo returns client-go's queue. It has no metrics if it has no name.
func newClientGo(name string, metrics peer.MetricsProvider) queue {
	return peerQueue{peer.NewTypedDelayingQueueWithConfig(
		peer.TypedDelayingQueueConfig[types.NamespacedName]{Name: name, MetricsProvider: metrics})}
}

func newControllerRuntime() queue { return peerQueue{priorityqueue.New[types.NamespacedName]("bench")} }

type system struct {
	name string
	new  func() queue
}

type options = workqueue.Options[types.NamespacedName]

// systems have no metrics, but for controller-runtime's queue, which always has.
var systems = []system{
	{"client-go", func() queue { return newClientGo("", nil) }},
	{"Flyball", func() queue { return newFlyball(options{}) }},
	{"Flyball, queueing time", func() queue { return newFlyball(options{QueueingTime: true}) }},
	{"controller-runtime", newControllerRuntime},
}

// measuredSystems have prometheus metrics.
var measuredSystems = []system{
	{"client-go", func() queue { return newClientGo("q", newPeerMetrics()) }},
	{"Flyball", func() queue { return newFlyball(options{Name: "q", Metrics: metrics.New()}) }},
	{"Flyball, causes", func() queue {
		return flyballCauses{flyball{workqueue.New(options{Name: "q", Metrics: metrics.New()})}}
	}},
	{"controller-runtime", newControllerRuntime},
}

// BenchmarkQueue adds, gets and finishes one key after the other, in one goroutine.
func BenchmarkQueue(b *testing.B) {
	cycles(b, "64 keys in turn", 64, systems)
	cycles(b, "1,024 keys in turn", 1_024, systems)
	cycles(b, "4,096 keys in turn", 4_096, systems)
	cycles(b, "100,000 keys in turn", 100_000, systems)
}

// BenchmarkQueueMetrics is BenchmarkQueue with prometheus metrics.
func BenchmarkQueueMetrics(b *testing.B) {
	cycles(b, "64 keys in turn", 64, measuredSystems)
	cycles(b, "100,000 keys in turn", 100_000, measuredSystems)
}

func cycles(b *testing.B, name string, n int, systems []system) {
	b.Run(name, func(b *testing.B) {
		keys := makeKeys(n)
		for _, s := range systems {
			b.Run(s.name, func(b *testing.B) {
				q := s.new()
				defer q.ShutDown()
				i := 0
				for b.Loop() {
					q.Add(keys[i])
					key, _ := q.Get()
					q.Done(key)
					if i++; i == n {
						i = 0
					}
				}
			})
		}
	})
}

// BenchmarkQueueWorkers has one producer of 50,000 keys, and workers that do nothing. It measures how long it takes to
// wake them.
func BenchmarkQueueWorkers(b *testing.B) {
	keys := makeKeys(50_000)
	for _, workers := range []int{4, 16, 64} {
		b.Run(fmt.Sprint(workers, " workers"), func(b *testing.B) {
			for _, s := range systems {
				b.Run(s.name, func(b *testing.B) {
					for b.Loop() {
						produce(s.new(), keys, workers)
					}
					b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(keys)), "ns/key")
				})
			}
		})
	}
}

// produce adds the keys, which differ, while the workers take them, and returns when all are done.
func produce(q queue, keys []types.NamespacedName, workers int) {
	var running, undone sync.WaitGroup
	undone.Add(len(keys))
	for range workers {
		running.Go(func() {
			for {
				key, ok := q.Get()
				if !ok {
					return
				}
				q.Done(key)
				undone.Done()
			}
		})
	}
	for _, key := range keys {
		q.Add(key)
	}
	undone.Wait()
	q.ShutDown()
	running.Wait()
}

// BenchmarkQueueAddAfter delays a million distinct keys. It reports memory in two ways: allocated per key, and what is
// left per key after garbage collection; the keys themselves are not counted.
func BenchmarkQueueAddAfter(b *testing.B) {
	const n = 1_000_000
	keys := makeKeys(n)
	b.Run("a million keys", func(b *testing.B) {
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
				calls := float64(b.N) * n
				b.ReportMetric(float64(took.Nanoseconds())/calls, "ns/key")
				b.ReportMetric(float64(retained)/calls, "B-retained/key")
				b.ReportMetric(float64(allocated)/calls, "B-allocated/key")
			})
		}
	})
}

func heap() runtime.MemStats {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m
}
