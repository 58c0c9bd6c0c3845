package reconcile

import (
	"context"
	"testing"
)

// BenchmarkReconcile is one key's way through the loop when its reconciler does nothing: add, get, reconcile, settle,
// done.
func BenchmarkReconcile(b *testing.B) {
	c := New("greeter", Func[Request](func(context.Context, Request) (Result, error) { return Result{}, nil }),
		Options[Request]{})
	var key Request
	key.Namespace, key.Name = "default", "greeting"
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		c.Enqueue(key)
		c.processNextWorkItem(ctx, ctx)
	}
}
