// Package latency counts how long things take, for histograms of Prometheus.
package latency

import (
	"sync/atomic"
	"time"
)

// Latency is how long things took. It is a snapshot of a [Recorder].
type Latency struct {
	// Count is how many there were, Sum the time of all together.
	Count  uint64
	Sum    time.Duration
	bounds []time.Duration
	// within has for each bound how many took no longer.
	within []uint64
}

// Buckets returns how many took no longer than each of some bounds, in seconds. The map of the zero
// Latency is empty.
func (l *Latency) Buckets() map[float64]uint64 {
	all := make(map[float64]uint64, len(l.bounds))
	for i, bound := range l.bounds {
		all[bound.Seconds()] = l.within[i]
	}
	return all
}

// Recorder counts durations. Its methods may be called from any goroutine.
type Recorder struct {
	bounds []time.Duration
	// counts has how many took no longer than each bound but longer than the one before; the last, how many took
	// longer than any.
	counts []atomic.Uint64
	// sum is in front of counts, because then most durations change one line of the processor's cache and not two.
	sum *atomic.Uint64
}

// New returns a recorder with these upper bounds of its buckets, which must rise.
func New(bounds []time.Duration) *Recorder {
	all := make([]atomic.Uint64, len(bounds)+2)
	return &Recorder{bounds: bounds, counts: all[1:], sum: &all[0]}
}

// Note counts a duration.
func (r *Recorder) Note(d time.Duration) {
	i := 0
	for i < len(r.bounds) && d > r.bounds[i] {
		i++
	}
	r.counts[i].Add(1)
	r.sum.Add(uint64(d))
}

// Snapshot returns what was counted.
func (r *Recorder) Snapshot() Latency {
	s := Latency{bounds: r.bounds, within: make([]uint64, len(r.bounds))}
	for i := range r.counts {
		s.Count += r.counts[i].Load()
		if i < len(r.bounds) {
			s.within[i] = s.Count
		}
	}
	s.Sum = time.Duration(r.sum.Load())
	return s
}
