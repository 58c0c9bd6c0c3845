package source

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/flyball-dev/flyball/internal/loop"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/workqueue"
)

// Chan is the source of the keys that are sent to keys: from outside the cluster, for example. Closing the channel ends
// the source. A key that is sent while nobody watches waits in the channel, or makes the sender wait.
func Chan[K comparable](name string, keys <-chan K) reconcile.Source[K] {
	return &channel[K]{always: always(name), keys: keys}
}

// always is the name of a source that has nothing to wait for.
type always string

func (a always) String() string { return string(a) }

// Health is nil.
func (a always) Health() error { return nil }

// Repeats returns false: what was fed is not fed again.
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

// Every is the source that adds what keys returns, at the start and then every interval. An interval that passes while
// keys runs is skipped.
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

// Output carries keys from one controller to others: a reconciler emits what it found out, and whoever watches the
// output reconciles that. Keys emitted while nobody watches wait for the first who does, each once.
//
// Concurrency: all methods may be called at any time.
type Output[K comparable] struct {
	always

	mu sync.Mutex
	// sinks are those of the controllers that watch now.
	sinks map[*reconcile.Sink[K]]struct{}
	// waiting has what was emitted while there were none, in order and without duplicates.
	waiting []emitted[K]
	known   map[K]bool
}

type emitted[K comparable] struct {
	key   K
	cause workqueue.Cause
}

// NewOutput makes an output. Its name stands in the causes of the keys that come through it.
func NewOutput[K comparable](name string) *Output[K] {
	return &Output[K]{always: always(name), sinks: map[*reconcile.Sink[K]]struct{}{}, known: map[K]bool{}}
}

// Emit hands key to the controllers that watch. Called with a reconcile's context, the cause names that reconcile.
func (o *Output[K]) Emit(ctx context.Context, key K) {
	name, _ := ctx.Value(loop.NameKey{}).(string)
	e := emitted[K]{key, workqueue.Cause{Source: o.String(), Event: "Emit", Object: name, Time: time.Now()}}
	o.mu.Lock()
	defer o.mu.Unlock()
	for sink := range o.sinks {
		sink.For(e.cause).Add(key) // A queue never blocks, and calls nobody back.
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
