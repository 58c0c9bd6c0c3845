package reconcile_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flyball-dev/flyball/reconcile"
)

// TestLeft: Left names queued keys and keys in flight. After the stop it names the keys that were not started.
func TestLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := reconcile.New("left", reconcile.Func[string](func(context.Context, string) (reconcile.Result, error) {
			time.Sleep(time.Second)
			return reconcile.Result{RequeueAfter: time.Hour}, nil
		}), reconcile.Options[string]{Workers: 2})
		for _, key := range []string{"c", "b", "a", "d"} {
			c.Enqueue(key)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- c.Run(ctx) }()
		synctest.Wait()
		c.Enqueue("c") // It is in flight.
		if got, want := c.Left(10), []string{"a", "b", "c", "d"}; !slices.Equal(got, want) {
			t.Errorf("at work: %q, want %q", got, want)
		}
		if got := c.Left(1); len(got) != 1 {
			t.Errorf("at most one: %q", got)
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if got, want := c.Left(10), []string{"a", "c", "d"}; !slices.Equal(got, want) {
			t.Errorf("after the stop: %q, want %q", got, want)
		}
	})
}
