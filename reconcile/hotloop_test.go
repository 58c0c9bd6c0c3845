package reconcile

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/flyball-dev/flyball/reconcile/internal/hotloop"
)

func loopOf(f Func[string]) *Controller[string] { return New("greeter", f, Options[string]{}) }

// In a bubble, a key that triggers itself without any delay would spin until the test times out.
func TestLoopWithoutTimeEndsTheController(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c *Controller[string]
		runs := 0
		c = loopOf(func(_ context.Context, key string) (Result, error) {
			runs++
			c.Enqueue(key)
			return Result{}, nil
		})
		c.Enqueue("a")
		err := c.Run(t.Context())
		var loop *SelfTriggeredError
		if !errors.As(err, &loop) || loop.Key != "a" || runs > hotloop.EndlessAfter+1 {
			t.Fatalf("ended after %d runs with %v", runs, err)
		}
		const want = "controller greeter: key a was reconciled 5000 times in a row, while no time passed, and was " +
			"triggered again each time by manual Enqueue: "
		if !strings.HasPrefix(err.Error(), want) {
			t.Errorf("said %q", err)
		}
	})
}
