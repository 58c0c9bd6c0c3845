package source

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flyball-dev/flyball/reconcile"
)

func TestChanFeedsUntilClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keys := make(chan string, 1)
		keys <- "early"
		r := recorder(nil)
		c, end := start(t, r, Chan("webhook", keys))
		time.Sleep(time.Second)
		keys <- "late"
		close(keys)
		synctest.Wait()
		want(t, r.seen(), []string{"early@0s", "late@1s"})
		if err := c.Health(); err != nil {
			t.Error(err)
		}
		end()
	})
}

func TestEvery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := recorder(nil)
		_, end := start(t, r, Every(time.Minute, func(context.Context) []string { return []string{"a"} }))
		time.Sleep(150 * time.Second)
		want(t, r.seen(), []string{"a@0s", "a@1m0s", "a@2m0s"})
		end()
	})
}

// An Output carries keys from one controller to another. Keys that were emitted before the second one ran are not lost.
// Each comes once, and its cause names the first controller.
func TestOutputFeedsAnotherController(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := NewOutput[string]("found")
		first, endFirst := start(t, recorder(func(ctx context.Context, key string) {
			out.Emit(ctx, "from-"+key)
			out.Emit(ctx, "from-"+key)
		}))
		first.Enqueue("a")
		first.Enqueue("b")
		synctest.Wait()
		var causes []string
		free := make(chan struct{})
		r := recorder(func(ctx context.Context, key string) {
			for _, cause := range reconcile.Causes(ctx) {
				causes = append(causes, cause.Source+" "+cause.Object)
			}
			if key == "busy" {
				<-free
			}
		})
		second, endSecond := start(t, r, out)
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
		endFirst()
		endSecond()
	})
}
