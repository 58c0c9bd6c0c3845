package informer

import (
	"sync/atomic"
	"time"
)

// latencyBounds are the upper bounds of the buckets of a Latency.
//
// Source: informer_processing_latency_seconds in k8s.io/component-base/metrics/prometheus/clientgo/fifo v0.37.2.
var latencyBounds = [...]time.Duration{
	time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond,
	250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2500 * time.Millisecond, 5 * time.Second,
	10 * time.Second,
}

// Latency says how long things took.
type Latency struct {
	// Count is how many there were, Sum the time of all together.
	Count uint64
	Sum   time.Duration
	// within has for each bound how many took no longer.
	within [len(latencyBounds)]uint64
}

// Buckets are how many took no longer than each of some bounds, in seconds: what a histogram of Prometheus wants.
func (l *Latency) Buckets() map[float64]uint64 {
	all := make(map[float64]uint64, len(latencyBounds))
	for i, bound := range latencyBounds {
		all[bound.Seconds()] = l.within[i]
	}
	return all
}

// latencies is a Latency in the making.
type latencies struct {
	// counts has how many took no longer than each bound but longer than the one before; the last, how many took
	// longer than any.
	counts [len(latencyBounds) + 1]atomic.Uint64
	sum    atomic.Int64
}

func (l *latencies) note(d time.Duration) {
	i := 0
	for i < len(latencyBounds) && d > latencyBounds[i] {
		i++
	}
	l.counts[i].Add(1)
	l.sum.Add(int64(d))
}

func (l *latencies) snapshot() (s Latency) {
	for i := range l.counts {
		s.Count += l.counts[i].Load()
		if i < len(latencyBounds) {
			s.within[i] = s.Count
		}
	}
	s.Sum = time.Duration(l.sum.Load())
	return s
}
