package feed

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/flyball-dev/flyball/internal/backlog"
	"github.com/flyball-dev/flyball/workqueue"
)

// fake is a source that repeats. It calls ran when it begins, and ends when gate is closed, but not before its context.
type fake struct {
	ran  func(ctx context.Context)
	gate chan struct{}
}

func (s fake) Run(ctx context.Context, _ *backlog.Backlog[string, workqueue.Cause], synced func()) error {
	s.ran(ctx)
	synced()
	<-ctx.Done()
	<-s.gate
	return nil
}

func (s fake) Health() error  { return nil }
func (s fake) String() string { return "fake" }
func (s fake) Repeats() bool  { return true }

// TestAddWhileWarmupEnds: a source that is added while Start waits for the end of a warm-up run runs once, for the
// controller, and not also in the run that ends.
func TestAddWhileWarmupEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f Feeds[string]
		slow, at := fake{func(context.Context) {}, make(chan struct{})}, fake{gate: make(chan struct{})}
		close(at.gate)
		runs := 0
		at.ran = func(ctx context.Context) {
			if runs++; ctx.Err() != nil {
				t.Error("the source runs with a context that has ended")
			}
		}
		f.Add(slow)
		warm, end := context.WithCancel(t.Context())
		go f.Warmup(warm)
		synctest.Wait()
		end()
		ctx, stop := context.WithCancel(t.Context())
		go f.Start(ctx, func(err error) { t.Error(err) })
		synctest.Wait()
		f.Add(at)
		synctest.Wait()
		close(slow.gate)
		synctest.Wait()
		if runs != 1 {
			t.Errorf("the source was run %d times", runs)
		}
		stop()
		f.Stop()
		f.Wait()
	})
}
