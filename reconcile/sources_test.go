package reconcile

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestChanFeedsUntilClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keys := make(chan string, 1)
		keys <- "early"
		r := recorder(nil)
		c := start(t, r, Options[string]{}, Chan("webhook", keys))
		time.Sleep(time.Second)
		keys <- "late"
		close(keys)
		synctest.Wait()
		want(t, r.seen(), []string{"early@0s", "late@1s"})
		if err := c.Health(); err != nil {
			t.Error(err)
		}
		_ = c.end()
	})
}

func TestEvery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := recorder(nil)
		source := Every(time.Minute, func(context.Context) []string { return []string{"a"} })
		c := start(t, r, Options[string]{}, source)
		time.Sleep(150 * time.Second)
		want(t, r.seen(), []string{"a@0s", "a@1m0s", "a@2m0s"})
		_ = c.end()
	})
}

// One controller's output is another's input: what was emitted before the other ran is not lost, each key once, and the
// cause tells whence.
func TestOutputFeedsAnotherController(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := NewOutput[string]("found")
		first := start(t, recorder(func(ctx context.Context, key string, _ int) (Result, error) {
			out.Emit(ctx, "from-"+key)
			out.Emit(ctx, "from-"+key)
			return Result{}, nil
		}), Options[string]{}, &script{keys: []string{"a", "b"}})
		var causes []string
		free := make(chan struct{})
		r := recorder(func(ctx context.Context, key string, _ int) (Result, error) {
			for _, cause := range Causes(ctx) {
				causes = append(causes, cause.Source+" "+cause.Object)
			}
			if key == "busy" {
				<-free
			}
			return Result{}, nil
		})
		second := start(t, r, Options[string]{}, out)
		want(t, r.seen(), []string{"from-a@0s", "from-b@0s"})
		want(t, causes, []string{"found test a", "found test b"})
		// The only worker of the second controller is busy, so that it cannot take the key between two calls of Emit.
		second.Enqueue("busy")
		synctest.Wait()
		first.Enqueue("a")
		synctest.Wait()
		close(free)
		synctest.Wait()
		want(t, r.seen(), []string{"from-a@0s", "from-b@0s", "busy@0s", "from-a@0s"})
		_ = first.end()
		_ = second.end()
	})
}
