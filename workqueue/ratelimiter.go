package workqueue

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"time"

	"golang.org/x/time/rate"

	"github.com/flyball-dev/flyball/internal/misuse"
	"github.com/flyball-dev/flyball/workqueue/internal/ratelimit"
)

// RateLimiter decides how long a key that failed waits before it is retried. The functions below make the usual ones.
//
// Concurrency: a queue calls its limiter from several goroutines at once, without holding a lock.
type RateLimiter[K comparable] interface {
	// When counts one more failure of the key and returns how long to wait.
	When(key K) time.Duration
	// Forget resets the key's failure count. A controller calls it only for keys that have failed.
	Forget(key K)
	// NumRequeues returns the number of failures since the last Forget.
	NumRequeues(key K) int
}

// DefaultControllerRateLimiter returns the rate limiter that controllers use by default. Each key waits 5 ms after its
// first failure, doubling up to 1000 s. All keys together share a bucket of 100 tokens that refills at 10 per second.
// The longer wait counts.
//
// Source: client-go v0.37.2 util/workqueue, DefaultTypedControllerRateLimiter.
func DefaultControllerRateLimiter[K comparable]() RateLimiter[K] {
	return NewMaxOfRateLimiter(
		NewExponentialRateLimiter[K](ExponentialOptions{}), NewBucketRateLimiter[K](10, 100),
	)
}

// ExponentialOptions configures [NewExponentialRateLimiter].
type ExponentialOptions struct {
	// Base is the wait after the first failure. Zero means 5 ms.
	Base time.Duration
	// Max bounds every wait, jitter included. Zero means 1000 s.
	Max time.Duration
	// Jitter lengthens each wait by a random fraction between 0 and Jitter, so that keys that failed together are not
	// retried together. Zero means no jitter.
	Jitter float64
	// Random returns numbers in [0, 1) for the jitter. Nil means math/rand/v2. It must be safe for concurrent use.
	Random func() float64
}

// NewExponentialRateLimiter returns a limiter that waits Base·2ⁿ after n earlier failures of a key, and at most Max.
func NewExponentialRateLimiter[K comparable](o ExponentialOptions) RateLimiter[K] {
	if o.Random == nil {
		o.Random = rand.Float64
	}
	return &ratelimit.Exponential[K]{
		Base: cmp.Or(o.Base, 5*time.Millisecond), Max: cmp.Or(o.Max, 1000*time.Second),
		Jitter: o.Jitter, Random: o.Random,
	}
}

// NewFastSlowRateLimiter returns a limiter that retries a key quickly a few times, then slowly: the wait is fast after
// each of the first attempts failures, and slow after all later ones.
func NewFastSlowRateLimiter[K comparable](fast, slow time.Duration, attempts int) RateLimiter[K] {
	return &ratelimit.FastSlow[K]{Fast: fast, Slow: slow, Attempts: attempts}
}

// NewBucketRateLimiter returns a limiter that limits the retries of all keys together by one token bucket. perSecond
// tokens are added to it per second, burst is its size, and it is full at the beginning. Each retry takes a token, and
// waits for it a minute at most. The limiter counts no failures.
func NewBucketRateLimiter[K comparable](perSecond float64, burst int) RateLimiter[K] {
	return &ratelimit.Bucket[K]{Limiter: rate.NewLimiter(rate.Limit(perSecond), burst), MaxDelay: time.Minute}
}

// NewMaxOfRateLimiter returns a limiter that counts a failure with every given limiter and waits for the longest of
// their waits. It panics if there is none, or if one is nil.
func NewMaxOfRateLimiter[K comparable](limiters ...RateLimiter[K]) RateLimiter[K] {
	if len(limiters) == 0 {
		panic("workqueue: NewMaxOfRateLimiter: no limiters given: failed keys would be retried immediately, forever")
	}
	all := make(ratelimit.MaxOf[K], 0, len(limiters))
	for i, limiter := range limiters {
		if misuse.IsNil(limiter) {
			panic(fmt.Sprintf("workqueue: NewMaxOfRateLimiter: limiter %d is nil", i+1))
		}
		all = append(all, limiter)
	}
	return all
}

// NewMaxWaitRateLimiter returns a limiter whose waits are those of the given one, capped at longest. It panics if the
// limiter is nil or longest is not above 0.
func NewMaxWaitRateLimiter[K comparable](limiter RateLimiter[K], longest time.Duration) RateLimiter[K] {
	if misuse.IsNil(limiter) || longest <= 0 {
		panic(fmt.Sprintf("workqueue: NewMaxWaitRateLimiter: the limiter is nil, or the longest wait is %v, "+
			"want more than 0", longest))
	}
	return ratelimit.MaxWait[K]{Limiter: limiter, Longest: longest}
}
