package workqueue_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flyball-dev/flyball/workqueue"
)

func waits(limiter workqueue.RateLimiter[string], n int) []time.Duration {
	var got []time.Duration
	for range n {
		got = append(got, limiter.When("a"))
	}
	return got
}

// Source: client-go v0.37.2 util/workqueue/default_rate_limiters.go.
func TestExponential(t *testing.T) {
	l := workqueue.NewExponentialRateLimiter[string](
		workqueue.ExponentialOptions{Base: time.Millisecond, Max: 5 * time.Millisecond},
	)
	want := []time.Duration{1e6, 2e6, 4e6, 5e6, 5e6}
	if got := waits(l, 5); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if n := l.NumRequeues("a"); n != 5 {
		t.Errorf("NumRequeues: got %d, want 5", n)
	}
	l.Forget("a")
	l.Forget("never seen")
	if got := l.When("a"); got != time.Millisecond || l.NumRequeues("never seen") != 0 {
		t.Errorf("after Forget: got %v", got)
	}
}

func TestExponentialDoesNotOverflow(t *testing.T) {
	const longest = time.Duration(1<<63 - 1)
	l := workqueue.NewExponentialRateLimiter[string](workqueue.ExponentialOptions{Base: 3 * time.Hour, Max: longest})
	before := time.Duration(0)
	for i, wait := range waits(l, 200) {
		if wait < before {
			t.Fatalf("failure %d waits %v, the one before it %v", i, wait, before)
		}
		before = wait
	}
	if before != longest {
		t.Errorf("got %v, want the longest wait", before)
	}
}

func TestExponentialJitterStaysInBounds(t *testing.T) {
	random := 0.0
	l := workqueue.NewExponentialRateLimiter[string](workqueue.ExponentialOptions{
		Base: time.Second, Max: 3 * time.Second, Jitter: 0.5, Random: func() float64 { return random },
	})
	var got []time.Duration
	for _, random = range []float64{0, 0.5, 0.999, 0.999} {
		got = append(got, l.When("a").Round(time.Millisecond))
	}
	if want := []time.Duration{1e9, 25e8, 3e9, 3e9}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestFastSlow(t *testing.T) {
	l := workqueue.NewFastSlowRateLimiter[string](1, 9, 2)
	if got := waits(l, 4); !slices.Equal(got, []time.Duration{1, 1, 9, 9}) {
		t.Errorf("got %v", got)
	}
}

// client-go's bucket is reserved ahead without bound: after a storm of 10,000 retries the next one waits 990 s.
func TestBucketDelayIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := workqueue.NewBucketRateLimiter[string](10, 100)
		var longest time.Duration
		for i, wait := range waits(l, 10_000) {
			if i < 100 && wait != 0 {
				t.Fatalf("retry %d of the burst waits %v", i, wait)
			}
			longest = max(longest, wait)
		}
		if longest != time.Minute {
			t.Errorf("longest wait: got %v, want a minute", longest)
		}
		time.Sleep(2 * time.Minute)
		if wait := l.When("a"); wait != 0 {
			t.Errorf("two minutes after the storm: got %v, want 0", wait)
		}
		l.Forget("a")
		if l.NumRequeues("a") != 0 {
			t.Error("a bucket remembers a key")
		}
	})
}

func TestMaxOfAndMaxWait(t *testing.T) {
	fast := workqueue.NewFastSlowRateLimiter[string](1, 9, 1)
	steady := workqueue.NewFastSlowRateLimiter[string](5, 5, 0)
	l := workqueue.NewMaxOfRateLimiter[string](fast, steady)
	if got := waits(workqueue.NewMaxWaitRateLimiter[string](l, 7), 3); !slices.Equal(got, []time.Duration{5, 7, 7}) {
		t.Errorf("got %v", got)
	}
	if l.NumRequeues("a") != 3 {
		t.Errorf("NumRequeues: got %d, want 3", l.NumRequeues("a"))
	}
	l.Forget("a")
	if l.NumRequeues("a") != 0 || fast.NumRequeues("a") != 0 {
		t.Error("Forget did not reach all limiters")
	}
}

// Source: client-go v0.37.2 util/workqueue, DefaultTypedControllerRateLimiter.
func TestDefaultControllerRateLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := workqueue.DefaultControllerRateLimiter[string]()
		got := waits(l, 19)
		if got[0] != 5*time.Millisecond || got[1] != 10*time.Millisecond || got[18] != 1000*time.Second {
			t.Errorf("got %v", got)
		}
	})
}
