package source

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/reconcile/internal/ctxkey"
	"github.com/flyball-dev/flyball/workqueue"
)

// Chan returns a source of the keys that are sent to a channel, for example from outside the cluster. Closing the
// channel ends the source. While the source does not run, a key waits in the channel, or blocks its sender if the
// channel is full.
func Chan[K comparable](name string, keys <-chan K) reconcile.Source[K] {
	return &channel[K]{always: always(name), keys: keys}
}

// always is the name of a source that is always healthy and does not repeat. It has the methods that such sources
// share.
type always string

func (a always) String() string { return string(a) }

// Health returns nil.
func (a always) Health() error { return nil }

// Repeats returns false: a second Run does not add the same keys again.
func (a always) Repeats() bool { return false }

type channel[K comparable] struct {
	always
	keys <-chan K
}

// Run implements reconcile.Source.
func (c *channel[K]) Run(ctx context.Context, out *reconcile.Sink[K], synced func()) error {
	if c.keys == nil {
		return fmt.Errorf("source %q: the channel is nil: nothing would ever come", c.String())
	}
	synced()
	for {
		select {
		case key, open := <-c.keys:
			if !open {
				return nil
			}
			out.For(workqueue.Cause{Source: c.String(), Event: "Received", Time: time.Now()}).Add(key)
		case <-ctx.Done():
			return nil
		}
	}
}

// Every returns a source that calls keys at the start and then every interval, and adds the keys that it returns. If
// keys runs for longer than the interval, ticks are skipped.
func Every[K comparable](interval time.Duration, keys func(ctx context.Context) []K) reconcile.Source[K] {
	return &ticker[K]{always: always("every " + interval.String()), interval: interval, keys: keys}
}

type ticker[K comparable] struct {
	always
	interval time.Duration
	keys     func(context.Context) []K
}

// Run implements reconcile.Source.
func (t *ticker[K]) Run(ctx context.Context, out *reconcile.Sink[K], synced func()) error {
	if t.interval <= 0 || t.keys == nil {
		return fmt.Errorf("source %q: Every requires a positive interval and a function that returns keys", t.String())
	}
	tick := time.NewTicker(t.interval)
	defer tick.Stop()
	for first := true; ; first = false {
		q := out.For(workqueue.Cause{Source: t.String(), Event: "Tick", Time: time.Now()})
		for _, key := range t.keys(ctx) {
			q.Add(key)
		}
		if first {
			synced()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// Output carries keys from one controller to others: the reconciler of one emits keys, and the controllers that watch
// the Output reconcile them. Keys that are emitted while no controller watches are kept, each once, for the first
// controller that watches.
//
// Concurrency: all methods may be called at any time.
type Output[K comparable] struct {
	always

	mu sync.Mutex
	// sinks has the controllers that watch now.
	sinks map[*reconcile.Sink[K]]struct{}
	// waiting has the keys that were emitted while sinks was empty, in order. known is the set of these keys.
	waiting []emitted[K]
	known   map[K]bool
}

type emitted[K comparable] struct {
	key   K
	cause workqueue.Cause
}

// NewOutput returns an Output. Its name stands in the causes of the keys that come through it.
func NewOutput[K comparable](name string) *Output[K] {
	return &Output[K]{always: always(name), sinks: map[*reconcile.Sink[K]]struct{}{}, known: map[K]bool{}}
}

// Emit adds key to the controllers that watch. If ctx is the context of a reconcile, the cause names that reconcile.
func (o *Output[K]) Emit(ctx context.Context, key K) {
	name, _ := ctx.Value(ctxkey.Name{}).(string)
	e := emitted[K]{key, workqueue.Cause{Source: o.String(), Event: "Emit", Object: name, Time: time.Now()}}
	o.mu.Lock()
	defer o.mu.Unlock()
	for sink := range o.sinks {
		sink.For(e.cause).Add(key) // Safe under mu: the queue neither blocks nor calls back.
	}
	if len(o.sinks) == 0 && !o.known[key] {
		o.known[key] = true
		o.waiting = append(o.waiting, e)
	}
}

// Run implements reconcile.Source.
func (o *Output[K]) Run(ctx context.Context, out *reconcile.Sink[K], synced func()) error {
	o.mu.Lock()
	o.sinks[out] = struct{}{}
	for _, e := range o.waiting {
		out.For(e.cause).Add(e.key)
	}
	o.waiting = nil
	clear(o.known)
	o.mu.Unlock()
	synced()
	<-ctx.Done()
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.sinks, out)
	return nil
}
