package informer

import (
	"context"
	"time"

	"github.com/flyball-dev/flyball/informer/handler"
	"github.com/flyball-dev/flyball/informer/internal/connection"
	"github.com/flyball-dev/flyball/internal/closed"
)

// HasSynced is described at [Informer].
func (s *SharedInformer[T]) HasSynced() bool { return closed.Is(s.synced) }

// Synced is described at [Informer].
func (s *SharedInformer[T]) Synced() <-chan struct{} { return s.synced }

// WaitForSync is described at [Informer].
func (s *SharedInformer[T]) WaitForSync(ctx context.Context) error {
	if s.HasSynced() {
		return nil
	}
	var why error
	select {
	case <-s.synced:
		return nil
	case <-s.stopped:
		why = handler.ErrStopped
	case <-ctx.Done():
		why = context.Cause(ctx)
	}
	h := s.Health()
	return notSynced(h.Resource, h.Namespace, h.Err, why)
}

// startGrace is how long WaitForSyncFailFast waits for another goroutine to call Run.
const startGrace = 100 * time.Millisecond

// WaitForSyncFailFast is described at [Informer].
func (s *SharedInformer[T]) WaitForSyncFailFast(ctx context.Context) error {
	for {
		failed := s.failed.Wait()
		if s.HasSynced() {
			return nil
		}
		if err := s.forbidden(); err != nil {
			return err
		}
		var unstarted <-chan time.Time
		if !s.begun() {
			unstarted = time.After(startGrace)
		}
		select {
		case <-unstarted:
			if !s.begun() {
				return ErrNotStarted
			}
		case <-failed:
		case <-s.synced:
		case <-s.stopped:
			return s.WaitForSync(ctx)
		case <-ctx.Done():
			return s.WaitForSync(ctx)
		}
	}
}

// begun reports whether the informer runs, or will run soon because its factory runs.
func (s *SharedInformer[T]) begun() bool {
	return s.started.Load() || s.o.Server != nil && s.o.Server.begun()
}

// forbidden returns an [ErrForbidden] if the server forbids the list.
func (s *SharedInformer[T]) forbidden() error {
	for _, src := range s.sources {
		if _, err := src.status.Health(); err != nil && connection.Forbids(err) {
			return notSynced(s.o.Resource, src.namespace, err, ErrForbidden)
		}
	}
	return nil
}
