package clientgo

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	peer "k8s.io/client-go/tools/cache"

	"github.com/flyball-dev/flyball/informer/deltafifo"
)

// What is written through a store is taken as it is, whatever the versions: deltafifo.AcceptAll. Who writes into the
// store of an informer tells no handler.

func (s *store[T]) Add(obj any) error { return s.upsert(obj) }

func (s *store[T]) Update(obj any) error { return s.upsert(obj) }

func (s *store[T]) upsert(obj any) error {
	t, version, err := s.incoming(obj)
	if err != nil {
		return err
	}
	return s.apply(deltafifo.Delta[T]{Type: deltafifo.Upsert, Object: t, ResourceVersion: version})
}

// incoming makes of an object what the indexer is to hold.
func (s *store[T]) incoming(obj any) (t T, version string, err error) {
	key, err := s.key(obj)
	if err != nil {
		return t, "", peer.KeyError{Obj: obj, Err: err}
	}
	t, err = s.wrap(key, obj)
	if err != nil {
		return t, "", peer.KeyError{Obj: obj, Err: err}
	}
	return t, s.versionOf(obj), nil
}

// versionOf is the resource version that a write of obj moves the store to; "" does not move it.
func (s *store[T]) versionOf(obj any) string {
	if m, ok := obj.(metav1.Object); ok && !s.followed {
		return m.GetResourceVersion()
	}
	return ""
}

func (s *store[T]) apply(deltas ...deltafifo.Delta[T]) error {
	for i := range deltas {
		deltas[i].Accept = deltafifo.AcceptAll
	}
	_, err := s.indexer.Apply(deltas)
	return err
}

// Delete removes what has obj's key; obj may be a DeletedFinalStateUnknown.
func (s *store[T]) Delete(obj any) error {
	key, err := s.key(obj)
	if err != nil {
		return peer.KeyError{Obj: obj, Err: err}
	}
	return s.apply(s.removal(key, obj))
}

// removal is the delta that deletes key: with the state obj if that is one, else with the state that is held.
func (s *store[T]) removal(key string, obj any) deltafifo.Delta[T] {
	if _, unknown := obj.(DeletedFinalStateUnknown); !unknown {
		if t, err := s.wrap(key, obj); err == nil {
			return deltafifo.Delta[T]{Type: deltafifo.Delete, Object: t, ResourceVersion: s.versionOf(obj)}
		}
	}
	if t, found := s.indexer.Get(key); found {
		return deltafifo.Delta[T]{Type: deltafifo.Delete, Object: t}
	}
	return deltafifo.Delta[T]{Type: deltafifo.Bookmark} // Nothing to delete, nothing to do.
}

// Replace makes the store hold list and nothing else.
func (s *store[T]) Replace(list []any, version string) error {
	objs := make([]T, 0, len(list))
	for _, obj := range list {
		t, _, err := s.incoming(obj)
		if err != nil {
			return err
		}
		objs = append(objs, t)
	}
	if s.followed {
		return s.exchange(objs)
	}
	return s.apply(deltafifo.Delta[T]{Type: deltafifo.Replace, Objects: objs, ResourceVersion: version})
}

// exchange is Replace in the store of an informer. It is no DeltaReplace, as that would pass for the informer's first
// list, which then never synced.
func (s *store[T]) exchange(objs []T) error {
	var deltas []deltafifo.Delta[T]
	for t := range s.indexer.All() {
		deltas = append(deltas, deltafifo.Delta[T]{Type: deltafifo.Delete, Object: t})
	}
	for _, t := range objs {
		deltas = append(deltas, deltafifo.Delta[T]{Type: deltafifo.Upsert, Object: t})
	}
	return s.apply(deltas...)
}

// Bookmark moves the resource version, never back.
func (s *store[T]) Bookmark(version string) {
	_ = s.apply(deltafifo.Delta[T]{Type: deltafifo.Bookmark, ResourceVersion: version}) // Only keys fail.
}

// Transaction writes all that has a key, and makes it visible in one step.
//
// Source: cache.Transaction in k8s.io/client-go/tools/cache v0.37.2.
func (s *store[T]) Transaction(txns ...peer.Transaction) *peer.TransactionError {
	failed := &peer.TransactionError{TotalTransactions: len(txns), SuccessfulIndices: []int{}, Errors: []error{}}
	deltas := make([]deltafifo.Delta[T], 0, len(txns))
	for i, txn := range txns {
		d, err := s.delta(txn)
		if err != nil {
			failed.Errors = append(failed.Errors, err)
			continue
		}
		failed.SuccessfulIndices = append(failed.SuccessfulIndices, i)
		deltas = append(deltas, d)
	}
	if err := s.apply(deltas...); err != nil {
		failed.SuccessfulIndices, failed.Errors = []int{}, append(failed.Errors, err)
	}
	if len(failed.Errors) > 0 {
		return failed
	}
	return nil
}

// delta is one write of a transaction.
func (s *store[T]) delta(txn peer.Transaction) (d deltafifo.Delta[T], err error) {
	key, err := s.key(txn.Object)
	if err != nil {
		return d, peer.KeyError{Obj: txn.Object, Err: err}
	}
	if txn.Type == peer.TransactionTypeDelete {
		return s.removal(key, txn.Object), nil
	}
	t, err := s.wrap(key, txn.Object)
	if err != nil {
		return d, peer.KeyError{Obj: txn.Object, Err: err}
	}
	return deltafifo.Delta[T]{Type: deltafifo.Upsert, Object: t, ResourceVersion: s.versionOf(txn.Object)}, nil
}
