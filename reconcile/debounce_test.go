package reconcile

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

func TestMinIntervalBetweenRunsOfOneKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &script{more: make(chan string)}
		r := recorder(nil)
		c := start(t, r, Options[string]{MinInterval: 10 * time.Second}, src)
		src.more <- "a"
		time.Sleep(time.Second)
		synctest.Wait()
		for range 50 { // A burst leads to one further run, after the interval.
			src.more <- "a"
		}
		src.more <- "b" // Other keys do not wait.
		time.Sleep(time.Minute)
		synctest.Wait()
		src.more <- "a"
		synctest.Wait()
		want(t, r.seen(), []string{"a@0s", "b@1s", "a@10s", "a@1m1s"})
		_ = c.end()
	})
}

// A retry and a RequeueAfter respect the interval as well.
func TestMinIntervalHoldsForRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := recorder(func(_ context.Context, _ string, n int) (Result, error) {
			switch n {
			case 1:
				return Result{}, errors.New("not yet")
			case 2:
				return Result{RequeueAfter: time.Second}, nil
			}
			return Result{}, nil
		})
		c := start(t, r, Options[string]{MinInterval: 10 * time.Second}, &script{keys: []string{"a"}})
		time.Sleep(time.Minute)
		synctest.Wait()
		want(t, r.seen(), []string{"a@0s", "a@10s", "a@20s"})
		_ = c.end()
	})
}

func TestDebounceWaitsForQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &script{more: make(chan string)}
		r := recorder(nil)
		c := start(t, r, Options[string]{Debounce: 2 * time.Second, MaxDebounce: 7500 * time.Millisecond}, src)
		for range 3 {
			src.more <- "a"
			time.Sleep(time.Second)
		}
		time.Sleep(time.Minute - 3*time.Second)
		synctest.Wait()
		want(t, r.seen(), []string{"a@4s"}) // two seconds after the last event
		for range 20 {
			src.more <- "a"
			time.Sleep(time.Second)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		// If the events do not stop, the key runs after seven and a half seconds.
		want(t, r.seen(), []string{"a@4s", "a@1m7.5s", "a@1m15.5s", "a@1m21s"})
		_ = c.end()
	})
}

// A key that was put off still has its causes when it runs.
func TestDebounceKeepsCauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &script{more: make(chan string)}
		var causes []int
		r := recorder(func(ctx context.Context, _ string, _ int) (Result, error) {
			causes = append(causes, len(Causes(ctx)))
			return Result{}, nil
		})
		c := start(t, r, Options[string]{MinInterval: time.Second}, src)
		for range 4 {
			src.more <- "a"
			synctest.Wait()
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := fmt.Sprint(causes); got != "[1 3]" {
			t.Errorf("causes per run %s, want [1 3]", got)
		}
		if got := c.Stats().Deferred; got == 0 {
			t.Error("nothing was deferred")
		}
		_ = c.end()
	})
}

func TestIdleKeysAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &script{more: make(chan string)}
		c := start(t, recorder(nil), Options[string]{MinInterval: time.Millisecond}, src)
		for i := range 10_000 {
			src.more <- fmt.Sprint(i)
			time.Sleep(time.Millisecond)
		}
		synctest.Wait()
		if n := len(c.keys.entries); n > 1100 {
			t.Errorf("%d keys are remembered", n)
		}
		_ = c.end()
	})
}
