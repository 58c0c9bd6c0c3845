package reconcile

import (
	"context"
	"testing"
	"time"
)

// BenchmarkTrack is what it costs to know, of one reconcile, that it runs.
func BenchmarkTrack(b *testing.B) {
	c := New("track", Func[string](func(context.Context, string) (Result, error) { return Result{}, nil }), Options[string]{})
	b.ReportAllocs()
	for b.Loop() {
		c.begin("key", time.Now())
		c.mu.Lock()
		delete(c.inFlight, "key")
		c.mu.Unlock()
	}
}
