package informer

import (
	"context"
	"time"

	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/informer/deltafifo"
	"github.com/flyball-dev/flyball/informer/indexer"
	"github.com/flyball-dev/flyball/informer/internal/fanout"
)

// consume applies batches from the log, and resyncs when they are due, until ctx is done or another consumer does so.
func (s *SharedInformer[T]) consume(ctx context.Context) {
	var batch []deltafifo.Delta[T]
	var changes []indexer.Change[T]
	var left *fanout.Listener[T]
	resync := time.AfterFunc(time.Hour, s.fifo.Wake)
	defer resync.Stop()
	for {
		batch = s.fifo.Take(batch) // First: a Wake after it keeps the consumer from leaving.
		due, next := s.dueResync()
		if next.IsZero() {
			resync.Stop()
		} else {
			resync.Reset(time.Until(next))
		}
		busy := batch != nil || due != nil
		if !busy {
			s.logIndexErr(ctx)
		}
		if left != nil && !s.deliver(ctx, left, busy) {
			return
		}
		if busy {
			if due != nil {
				batch = append(batch, deltafifo.Delta[T]{Type: deltafifo.Resync})
			}
			changes, left = s.process(ctx, batch, due)
			s.notifyObservers(changes)
			continue
		}
		left = nil
		select {
		case <-s.fifo.Ready():
		case <-ctx.Done():
			return
		}
		if ctx.Err() != nil {
			return // Even if something else was ready, too.
		}
	}
}

// deliver has a handler called for its changes. A consumer that is not busy calls it itself, because to wake a
// goroutine takes longer than most handlers do. What comes meanwhile goes to another consumer, so a handler that blocks
// holds up nothing. deliver returns false if there is another consumer now.
func (s *SharedInformer[T]) deliver(ctx context.Context, l *fanout.Listener[T], busy bool) bool {
	if busy || !s.fifo.Leave(func() { s.consumers.Go(func() { s.consume(ctx) }) }) {
		s.fan.Wake(l)
		return true
	}
	s.fan.Serve(l)
	return s.fifo.Return()
}

// dueResync returns the listeners whose resync is due, and when the next is; none before the cache has synced.
func (s *SharedInformer[T]) dueResync() (due []*fanout.Listener[T], next time.Time) {
	if !s.HasSynced() {
		return nil, time.Time{}
	}
	return s.fan.DueResync()
}

// process applies a batch, publishes the changes to the handlers, and returns them. left is a handler that has still to
// be called for them; nil if there is none. The log counts the batch as pending until process has raised batches. So at
// every moment Stats counts the batch, either as queued or in Batches.
func (s *SharedInformer[T]) process(ctx context.Context, deltas []deltafifo.Delta[T],
	due []*fanout.Listener[T],
) (changes []indexer.Change[T], left *fanout.Listener[T]) {
	s.joining.Lock()
	defer s.joining.Unlock()
	began := time.Now()
	defer func() {
		s.batches.Add(1)
		s.processing.Note(time.Since(began))
	}()
	applied, err := s.indexer.Apply(deltas)
	if err != nil {
		// Cannot happen: objects of this type always have a key.
		klog.FromContext(ctx).Error(err, "Failed to apply batch", "resource", s.o.Resource)
		return nil, nil
	}
	s.duplicates.Add(int64(applied.Duplicates))
	s.outdated.Add(int64(applied.Outdated))
	s.mutations.Keep(applied.Changes)
	if len(applied.Changes) > 0 || applied.FirstSync {
		left = s.fan.Publish(fanout.Batch[T]{Changes: applied.Changes, Synced: applied.FirstSync})
	}
	if applied.FirstSync {
		close(s.synced)
	}
	if applied.Resync {
		all := s.indexer.Everything(indexer.ChangeResync)
		if l := s.fan.Publish(fanout.Batch[T]{Changes: all, Only: due}); l != nil {
			s.fan.Wake(l)
		}
	}
	return applied.Changes, left
}
