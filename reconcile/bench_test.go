package reconcile

import (
	"context"
	"fmt"
	"testing"

	"k8s.io/klog/v2"
)

// BenchmarkReconcile measures the way of a key through the loop, from Enqueue to Done, with a reconciler that does
// nothing.
func BenchmarkReconcile(b *testing.B) {
	next := oneReconcile(b)
	b.ReportAllocs()
	for b.Loop() {
		next()
	}
}

// TestAllocationsOfAReconcile: a reconcile that does nothing allocates its context, and no more. A worker has one item
// for all keys; here each key has its own.
func TestAllocationsOfAReconcile(t *testing.T) {
	if n := testing.AllocsPerRun(1000, oneReconcile(t)); n > 2 {
		t.Errorf("%v allocations, want one for the context and one for the item", n)
	}
}

// oneReconcile returns a function that passes a key through a controller whose reconciler does nothing.
func oneReconcile(t testing.TB) func() {
	c := New("greeter", Func[Request](func(context.Context, Request) (Result, error) { return Result{}, nil }),
		Options[Request]{})
	engine := engineOf(c)
	keys := make([]Request, 1000) // The hot loop check would watch a single key.
	for n := range keys {
		keys[n].Namespace, keys[n].Name = "default", fmt.Sprint("greeting-", n)
	}
	ctx, n := t.Context(), 0
	return func() {
		c.Enqueue(keys[n%len(keys)])
		n++
		item, err := engine.queue.Get(ctx)
		if err != nil {
			t.Fatal(err)
		}
		engine.processNextWorkItem(ctx, &item)
		engine.queue.Done(item.Key)
	}
}

// BenchmarkEnqueue adds 10,000 keys in turn while workers take them. Their reconciler does nothing.
func BenchmarkEnqueue(b *testing.B) {
	keys := make([]Request, 10_000)
	for n := range keys {
		keys[n].Namespace, keys[n].Name = "default", fmt.Sprint("greeting-", n)
	}
	for _, workers := range []int{0, 1, 16} {
		b.Run(fmt.Sprint(workers, "_workers"), func(b *testing.B) {
			c := New("greeter", Func[Request](func(context.Context, Request) (Result, error) { return Result{}, nil }),
				Options[Request]{Workers: workers})
			ctx, stop := context.WithCancel(klog.NewContext(b.Context(), klog.NewKlogr().V(9)))
			defer stop()
			over := make(chan struct{})
			go func() {
				defer close(over)
				if workers > 0 {
					_ = c.Run(ctx)
				}
			}()
			n := 0
			for b.Loop() {
				c.Enqueue(keys[n%len(keys)])
				n++
			}
			b.StopTimer()
			stop()
			<-over
		})
	}
}
