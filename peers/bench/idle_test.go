package bench

import (
	"context"
	"runtime"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/flyball-dev/flyball/informer"
)

// BenchmarkIdle measures what an informer with one handler takes when it has nothing to do. The goroutine that runs the
// informer is counted. It is done once, whatever b.N is.
func BenchmarkIdle(b *testing.B) {
	none := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
	b.Run("an idle informer", func(b *testing.B) {
		b.Run("client-go", func(b *testing.B) {
			idle(b, func(ctx context.Context) (run, wait func()) {
				inf := cache.NewSharedIndexInformer(decodedClientGo(none), &corev1.Pod{}, 0, nil)
				if _, err := inf.AddEventHandler(cache.ResourceEventHandlerFuncs{}); err != nil {
					b.Fatal(err)
				}
				return func() { inf.RunWithContext(ctx) },
					func() { cache.WaitForCacheSync(ctx.Done(), inf.HasSynced) }
			})
		})
		b.Run("Flyball", func(b *testing.B) {
			idle(b, func(ctx context.Context) (run, wait func()) {
				inf := informer.NewSharedInformer(decoded{none}, informer.Options[*corev1.Pod]{})
				if _, err := inf.AddHandler(informer.Handler[*corev1.Pod]{}, informer.HandlerOptions{}); err != nil {
					b.Fatal(err)
				}
				return func() { _ = inf.Run(ctx) }, func() { _ = inf.WaitForSync(ctx) }
			})
		})
	})
}

// idle starts a number of informers, and reports how much more there is of each thing.
func idle(b *testing.B, start func(ctx context.Context) (run, wait func())) {
	const informers = 200
	ctx, stop := context.WithCancel(b.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	before, goroutines := heap(), runtime.NumGoroutine()
	var waits []func()
	for range informers {
		run, wait := start(ctx)
		running.Go(run)
		waits = append(waits, wait)
	}
	for _, wait := range waits {
		wait()
	}
	after := heap()
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(runtime.NumGoroutine()-goroutines)/informers, "goroutines")
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/informers, "heap-B")
	b.ReportMetric(float64(after.StackInuse-before.StackInuse)/informers, "stack-B")
}
