package reflector

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// TestBackoff: delays double up to a limit, vary by a factor below two, and start again at the minimum after a quiet
// time, which begins when the last delay ends.
func TestBackoff(t *testing.T) {
	for _, c := range []struct {
		spread float64
		want   []time.Duration
	}{
		{0, []time.Duration{800, 1600, 3200, 6400, 12800, 25600, 30000, 30000}},
		{0.5, []time.Duration{1200, 2400, 4800, 9600, 19200, 38400, 45000, 45000}},
	} {
		d := newDelays(Backoff{Rand: func() float64 { return c.spread }})
		var got []time.Duration
		now := time.Now()
		for range c.want {
			delay := d.take(now)
			got = append(got, delay/time.Millisecond)
			now = now.Add(delay)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("spread %v: %d, want %d", c.spread, got, c.want)
		}
		if delay := d.take(now.Add(2 * time.Minute)); delay < 30*time.Second {
			t.Errorf("spread %v: %v when the quiet time was not over", c.spread, delay)
		}
		if delay := d.take(d.until.Add(2*time.Minute + 1)); delay != c.want[0]*time.Millisecond {
			t.Errorf("spread %v: %v after a quiet time", c.spread, delay)
		}
	}
	d, seen := newDelays(Backoff{}), map[time.Duration]bool{}
	for range 100 {
		delay := d.take(d.until.Add(time.Hour))
		seen[delay] = true
		if delay < 800*time.Millisecond || delay >= 1600*time.Millisecond {
			t.Errorf("first delay %v", delay)
		}
	}
	if len(seen) < 50 {
		t.Errorf("%d different delays of 100", len(seen))
	}
}

// TestBackoffIsMonotonic (case 23): setting the clock does not delay a retry.
func TestBackoffIsMonotonic(t *testing.T) {
	d := newDelays(Backoff{})
	d.take(time.Now())
	if !strings.Contains(d.until.String(), " m=+") {
		t.Errorf("backoff until %v", d.until)
	}
}
