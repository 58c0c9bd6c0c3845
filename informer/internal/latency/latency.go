// Package latency counts how long the transactions of a cache take.
package latency

import (
	"sync/atomic"
	"time"
)

// bounds are the upper bounds of the buckets of a Latency.
//
// Source: informer_processing_latency_seconds in k8s.io/component-base/metrics/prometheus/clientgo/fifo v0.37.2.
var bounds = [...]time.Duration{
	time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond,
	250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2500 * time.Millisecond, 5 * time.Second,
	10 * time.Second,
}

// Latency says how long things took. It is a snapshot of a [Recorder].
type Latency struct {
	// Count is how many there were, Sum the time of all together.
	Count uint64
	Sum   time.Duration
	// within has for each bound how many took no longer.
	within [len(bounds)]uint64
}

// Buckets are how many took no longer than each of some bounds, in seconds: what a histogram of Prometheus wants.
func (l *Latency) Buckets() map[float64]uint64 {
	all := make(map[float64]uint64, len(bounds))
	for i, bound := range bounds {
		all[bound.Seconds()] = l.within[i]
	}
	return all
}

// Recorder counts durations. Its methods may be called from any goroutine.
type Recorder struct {
	// counts has how many took no longer than each bound but longer than the one before; the last, how many took
	// longer than any.
	counts [len(bounds) + 1]atomic.Uint64
	sum    atomic.Int64
}

// Note counts a duration.
func (l *Recorder) Note(d time.Duration) {
	i := 0
	for i < len(bounds) && d > bounds[i] {
		i++
	}
	l.counts[i].Add(1)
	l.sum.Add(int64(d))
}

// Snapshot returns what was counted.
func (l *Recorder) Snapshot() (s Latency) {
	for i := range l.counts {
		s.Count += l.counts[i].Load()
		if i < len(bounds) {
			s.within[i] = s.Count
		}
	}
	s.Sum = time.Duration(l.sum.Load())
	return s
}
