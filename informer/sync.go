package informer

import (
	"context"

	"github.com/flyball-dev/flyball/informer/internal/connection"
	"github.com/flyball-dev/flyball/informer/internal/fanout"
)

// HasSynced is described at [Informer].
func (s *SharedInformer[T]) HasSynced() bool {
	select {
	case <-s.synced:
		return true
	default:
		return false
	}
}

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
		why = fanout.ErrStopped
	case <-ctx.Done():
		why = context.Cause(ctx)
	}
	h := s.Health()
	return notSynced(h.Resource, h.Namespace, h.Err, why)
}

// WaitForSyncOrRefusal is described at [Informer].
func (s *SharedInformer[T]) WaitForSyncOrRefusal(ctx context.Context) error {
	for {
		failed := s.failed.Wait()
		if s.HasSynced() {
			return nil
		}
		if err := s.refusal(); err != nil {
			return err
		}
		select {
		case <-failed:
		case <-s.synced:
		case <-s.stopped:
			return s.WaitForSync(ctx)
		case <-ctx.Done():
			return s.WaitForSync(ctx)
		}
	}
}

// refusal returns why the server refuses to fill the cache; nil when it does not.
func (s *SharedInformer[T]) refusal() error {
	for _, src := range s.sources {
		if _, err := src.status.Health(); err != nil && connection.Refuses(err) {
			return notSynced(s.o.Resource, src.namespace, err, ErrRefused)
		}
	}
	return nil
}
