package reconcile_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flyball-dev/flyball/reconcile"
)

// TestWork: Work has keys that are in flight, delayed, failing and given up, and loses them when they succeed.
func TestWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		broken := true
		c := reconcile.New("work",
			reconcile.Func[string](func(_ context.Context, key string) (reconcile.Result, error) {
				switch {
				case key == "held":
					<-release
				case key == "later":
					return reconcile.Result{RequeueAfter: time.Hour}, nil
				case key == "fails" && broken:
					return reconcile.Result{}, errors.New("broken")
				case key == "senseless":
					return reconcile.Result{}, reconcile.Terminal(errors.New("senseless"))
				}
				return reconcile.Result{}, nil
			}), reconcile.Options[string]{Workers: 3})
		if w := c.Work(); w.Started {
			t.Error("started before Run")
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- c.Run(ctx) }()
		for _, key := range []string{"held", "later", "fails", "senseless"} {
			c.Enqueue(key)
		}
		synctest.Wait()
		w := c.Work()
		if !w.Started || w.InFlight != 1 || w.Ready != 0 {
			t.Errorf("work is %+v", w)
		}
		why := map[string]string{}
		for _, d := range w.Delayed {
			why[d.Key] = d.Why
		}
		if len(why) != 2 || why["later"] != "RequeueAfter" || why["fails"] != reconcile.WhyRetry {
			t.Errorf("delayed for %v", why)
		}
		failing := map[string]reconcile.Failing{}
		for _, f := range w.Failing {
			failing[f.Key] = f
		}
		if len(failing) != 2 || failing["fails"].GivenUp || !failing["senseless"].GivenUp ||
			failing["fails"].Attempts != 1 || len(failing["fails"].Causes) != 1 {
			t.Errorf("failing: %+v", failing)
		}
		broken = false
		close(release)
		time.Sleep(time.Minute)
		if w = c.Work(); w.InFlight != 0 || len(w.Failing) != 1 || len(w.Delayed) != 1 {
			t.Errorf("at the end: %+v", w)
		}
		if s := c.Stats(); s.Peak < 1 || s.Peak > 3 {
			t.Errorf("peak is %d", s.Peak)
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestWhyDelayed: Work has the reason for each delay, even if a key waits for several reasons and has more causes than
// the queue keeps.
func TestWhyDelayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c *reconcile.Controller[string]
		c = reconcile.New("why", reconcile.Func[string](func(_ context.Context, key string) (reconcile.Result, error) {
			for i := range 20 {
				c.EnqueueAfter(key, time.Hour+time.Duration(i))
			}
			return reconcile.Result{}, errors.New("broken")
		}), reconcile.Options[string]{})
		paced := reconcile.New("paced", reconcile.Func[string](func(context.Context, string) (reconcile.Result, error) {
			return reconcile.Result{}, errors.New("broken")
		}), reconcile.Options[string]{MinInterval: time.Minute})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 2)
		go func() { done <- c.Run(ctx) }()
		go func() { done <- paced.Run(ctx) }()
		c.Enqueue("a")
		paced.Enqueue("a")
		synctest.Wait()
		for range 3 {
			delayed := c.Work().Delayed
			if len(delayed) != 2 || delayed[0].Why != reconcile.WhyRetry || delayed[1].Why != "EnqueueAfter" {
				t.Errorf("delayed: %+v, want a retry and what was asked for", delayed)
			}
			time.Sleep(100 * time.Millisecond)
			c.EnqueueAfter("a", 2*time.Hour)
			synctest.Wait()
		}
		if delayed := paced.Work().Delayed; len(delayed) != 1 || delayed[0].Why != reconcile.WhyDeferred {
			t.Errorf("delayed: %+v, want what is paced", delayed)
		}
		stop()
		if err := errors.Join(<-done, <-done); err != nil {
			t.Error(err)
		}
	})
}
