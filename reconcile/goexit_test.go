package reconcile

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestGoexitGivesTheKeyBack: a reconciler ends the goroutine of its worker, as t.FailNow does. The other worker goes
// on, also with that key, and the controller stops cleanly.
func TestGoexitGivesTheKeyBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var exits, runs atomic.Int32
		c := New("greeter", Func[string](func(_ context.Context, key string) (Result, error) {
			if key == "bad" && exits.Add(1) == 1 {
				runtime.Goexit()
			}
			runs.Add(1)
			return Result{}, nil
		}), Options[string]{Workers: 2})
		ctx, stop := context.WithCancel(quiet(t.Context()))
		ended := make(chan error, 1)
		go func() { ended <- c.Run(ctx) }()
		for range 3 {
			c.Enqueue("bad")
			c.Enqueue("good")
			time.Sleep(time.Second)
		}
		if s := c.Stats(); s.InFlight != 0 || s.Queued != 0 || runs.Load() != 5 {
			t.Errorf("%d in flight, %d queued, %d reconciles", s.InFlight, s.Queued, runs.Load())
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
