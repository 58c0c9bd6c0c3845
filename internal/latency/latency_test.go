package latency

import (
	"testing"
	"time"
)

// TestLatency: each duration is in the bucket of the first bound that is not below it, and in all after that.
func TestLatency(t *testing.T) {
	l := New([]time.Duration{time.Millisecond, 5 * time.Millisecond, 5 * time.Second, 10 * time.Second})
	for _, d := range []time.Duration{0, time.Millisecond, 2 * time.Millisecond, 10 * time.Second, time.Minute} {
		l.Note(d)
	}
	s := l.Snapshot()
	if s.Count != 5 || s.Sum != 70*time.Second+3*time.Millisecond {
		t.Errorf("%+v", s)
	}
	buckets := s.Buckets()
	for bound, want := range map[float64]uint64{0.001: 2, 0.005: 3, 5: 3, 10: 4} {
		if buckets[bound] != want {
			t.Errorf("%v took no longer than %v s, want %d", buckets[bound], bound, want)
		}
	}
	if len(buckets) != 4 {
		t.Errorf("%d buckets", len(buckets))
	}
}
