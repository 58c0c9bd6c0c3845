package informer

import (
	"context"
	"runtime"
	"testing"

	"github.com/flyball-dev/flyball/informer/listwatch"
)

// TestIdleInformerIsSmall: an idle informer with a handler has two goroutines and little memory.
func TestIdleInformerIsSmall(t *testing.T) {
	const informers = 200
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	goroutines := runtime.NumGoroutine()
	for range informers {
		s := &idleSource{}
		inf := NewSharedInformer[object](s, Options[object]{})
		must(inf.AddHandler(Handler[object]{}, HandlerOptions{}))
		stop := start(t, inf.Run)
		must(0, inf.WaitForSync(t.Context()))
		defer stop()
	}
	for range 1_000_000 { // Everything was delivered to the handlers, and their goroutines end.
		if runtime.NumGoroutine() <= goroutines+3*informers {
			break
		}
		runtime.Gosched()
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	perInformer := (runtime.NumGoroutine() - goroutines) / informers
	memory := (after.HeapAlloc + after.StackInuse - before.HeapAlloc - before.StackInuse) / informers
	t.Logf("%d goroutines (one is the test's), %d bytes of heap and stack", perInformer, memory)
	if perInformer > 3 {
		t.Errorf("%d goroutines for each informer", perInformer)
	}
}

// idleSource has no objects and sends no events.
type idleSource struct{}

func (*idleSource) List(context.Context, listwatch.ListOptions, func(object) error) (listwatch.ListResult, error) {
	return listwatch.ListResult{ResourceVersion: "1"}, nil
}

func (*idleSource) Watch(context.Context, listwatch.WatchOptions) (listwatch.Watch[object], error) {
	return &idleSource{}, nil
}

func (*idleSource) Next(ctx context.Context) (listwatch.Event[object], error) {
	<-ctx.Done()
	return listwatch.Event[object]{}, ctx.Err()
}

func (*idleSource) Close() error { return nil }
