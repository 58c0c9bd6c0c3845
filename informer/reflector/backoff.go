package reflector

import (
	"cmp"
	"math/rand/v2"
	"time"
)

// Backoff configures how long a reflector waits after failures. The zero value means the defaults.
//
// The delay doubles from Min to Max. It starts again at Min only when none was needed for the time Reset: a server that
// accepts requests and breaks them off at once has not recovered.
//
// Source: the numbers are those of NewReflectorWithOptions in k8s.io/client-go/tools/cache v0.37.2.
type Backoff struct {
	// Min is the first delay; 0 means 800 ms.
	Min time.Duration
	// Max is the longest delay before jitter; 0 means 30 s.
	Max time.Duration
	// Reset is the quiet time after which the next delay is Min again; 0 means 2 min.
	Reset time.Duration
	// Rand returns numbers in [0,1). Each delay d, and each watch's timeout, becomes d*(1+Rand()), so that informers
	// that lost a server together do not all return at once. nil means the source of math/rand/v2.
	Rand func() float64
}

// delays computes the delays of one reflector.
type delays struct {
	Backoff
	next time.Duration
	// until is when the last delay ends.
	until time.Time
}

func newDelays(b Backoff) *delays {
	b.Min = cmp.Or(max(b.Min, 0), 800*time.Millisecond)
	b.Max = cmp.Or(max(b.Max, 0), 30*time.Second)
	b.Reset = cmp.Or(max(b.Reset, 0), 2*time.Minute)
	if b.Rand == nil {
		b.Rand = rand.Float64
	}
	return &delays{Backoff: b}
}

// take returns the delay after a failure at now.
func (d *delays) take(now time.Time) time.Duration {
	if d.next == 0 || now.Sub(d.until) > d.Reset {
		d.next = d.Min
	}
	delay := time.Duration(float64(d.next) * (1 + d.Rand()))
	d.next = min(2*d.next, d.Max)
	d.until = now.Add(delay)
	return delay
}
