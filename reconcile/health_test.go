package reconcile

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func health(c *started) string {
	if err := c.Health(); err != nil {
		return err.Error()
	}
	return ""
}

// Case: a panic is recovered, counted and retried with backoff. Other keys are unaffected. Health reports many panics
// in a row.
func TestPanicsInARowAreUnhealthy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var panicking atomic.Bool
		panicking.Store(true)
		r := recorder(func(_ context.Context, key string, _ int) (Result, error) {
			if key == "bad" && panicking.Load() {
				panic("boom")
			}
			return Result{}, nil
		})
		src := &script{keys: []string{"bad"}, more: make(chan string)}
		c := start(t, r, Options[string]{Workers: 2}, src)
		time.Sleep(10 * time.Second) // 5 ms · 2ⁿ: eleven times
		synctest.Wait()
		if got := health(c); !strings.Contains(got, "reconciles panicked") {
			t.Errorf("health %q", got)
		}
		src.more <- "good"
		synctest.Wait()
		if got := health(c); got != "" {
			t.Errorf("health after a good reconcile: %q", got)
		}
		panicking.Store(false)
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := c.Stats(); got.Panics < 10 || got.Retries != got.Panics {
			t.Errorf("stats %+v", got)
		}
		_ = c.end()
	})
}

// Case: a hung reconcile is logged once, blocks its own key and no other, and Health names it until it ends.
func TestHungReconcileIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		free := make(chan struct{})
		r := recorder(func(_ context.Context, key string, n int) (Result, error) {
			if key == "hung" && n == 1 {
				<-free
			}
			return Result{}, nil
		})
		src := &script{keys: []string{"hung"}, more: make(chan string)}
		c := start(t, r, Options[string]{Workers: 2, HungAfter: time.Minute}, src)
		src.more <- "hung" // It must not run twice at once.
		src.more <- "other"
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		want(t, r.seen(), []string{"hung@0s", "other@0s"})
		if got := health(c); got != "test: 1 key reconciling, hung for 5m0s" {
			t.Errorf("health %q", got)
		}
		if got := c.Stats().Hung; got != 1 {
			t.Errorf("%d alarms, want 1", got)
		}
		close(free)
		synctest.Wait()
		want(t, r.seen(), []string{"hung@0s", "other@0s", "hung@5m0s"})
		if got := health(c); got != "" {
			t.Errorf("health %q", got)
		}
		_ = c.end()
	})
}

// Case: the timeout ends the context of one reconcile, which is then retried. The process goes on.
func TestTimeoutEndsOneReconcile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := recorder(func(ctx context.Context, _ string, n int) (Result, error) {
			if n == 1 {
				<-ctx.Done()
				return Result{}, ctx.Err()
			}
			return Result{}, nil
		})
		c := start(t, r, Options[string]{Timeout: 3 * time.Second}, &script{keys: []string{"a"}})
		time.Sleep(time.Minute)
		synctest.Wait()
		want(t, r.seen(), []string{"a@0s", "a@3.005s"})
		if got := c.Stats(); got.Errors != 1 || got.Retries != 1 {
			t.Errorf("stats %+v", got)
		}
		_ = c.end()
	})
}

func TestKeysThatFailForLongAreUnhealthy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var broken atomic.Bool
		broken.Store(true)
		r := recorder(func(_ context.Context, key string, _ int) (Result, error) {
			switch {
			case key == "terminal":
				return Result{}, Terminal(errors.New("cannot ever work"))
			case broken.Load() && key != "fine":
				return Result{}, errors.New("no quota")
			}
			return Result{}, nil
		})
		c := start(t, r, Options[string]{FailingAfter: 5 * time.Minute},
			&script{keys: []string{"a", "b", "fine", "terminal"}})
		time.Sleep(4 * time.Minute)
		synctest.Wait()
		if got := health(c); got != "" {
			t.Errorf("health after 4 min: %q", got)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if got := health(c); got != "test: 2 keys failing, a for 6m0s" {
			t.Errorf("health after 6 min: %q", got)
		}
		broken.Store(false)
		time.Sleep(20 * time.Minute)
		synctest.Wait()
		if got := health(c); got != "" {
			t.Errorf("health after they succeeded: %q", got)
		}
		_ = c.end()
	})
}

// Case: an error wins over RequeueAfter.
func TestErrorBeatsRequeueAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := recorder(func(_ context.Context, _ string, n int) (Result, error) {
			if n == 1 {
				return Result{RequeueAfter: time.Hour}, errors.New("failed")
			}
			return Result{}, nil
		})
		c := start(t, r, Options[string]{}, &script{keys: []string{"a"}})
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		want(t, r.seen(), []string{"a@0s", "a@5ms"})
		_ = c.end()
	})
}
