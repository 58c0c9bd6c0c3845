package multicluster

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/flyball-dev/flyball/informer"
)

// backoff are the pauses between attempts. The zero value is not usable.
type backoff struct {
	informer.Backoff
	next time.Duration
	// until is when the last pause was to end.
	until time.Time
}

func newBackoff(b informer.Backoff) *backoff {
	if b.Rand == nil {
		b.Rand = rand.Float64
	}
	return &backoff{Backoff: b, next: b.Min}
}

// wait sleeps before the next attempt and reports whether ctx allows one. After an attempt that lasted long, the pauses
// start from the shortest again.
func (r *backoff) wait(ctx context.Context) bool {
	if !r.until.IsZero() && time.Since(r.until) > 2*r.Max {
		r.next = r.Min
	}
	wait := time.Duration(float64(r.next) * (1 + r.Rand()))
	r.until = time.Now().Add(wait)
	r.next = min(2*r.next, r.Max)
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
