package clientgo

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	peer "k8s.io/client-go/tools/cache"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/deltafifo"
	"github.com/flyball-dev/flyball/informer/indexer"
)

// store implements client-go's Indexer with an indexer.Indexer. Its elements are of type [keyed] in a store that a
// program makes, and of type [held] in the store of an informer. The methods that read come first, then those that
// write.
type store[T any] struct {
	indexer *indexer.Indexer[T]
	key     KeyFunc
	// wrap converts an object to an element of the indexer; unwrap converts it back.
	wrap   func(key string, obj any) (T, error)
	unwrap func(T) any
	keyOf  func(T) string
	// followed is true if a reflector writes to the indexer. Then only the reflector moves the resource version. If
	// other writes moved it too, the indexer would reject a list that is older than they are.
	followed bool

	mu sync.Mutex
	// indexers is the result of GetIndexers.
	indexers Indexers
}

// NewStore returns a cache for objects of any type. key returns the key of an object.
func NewStore(key KeyFunc) Store { return NewIndexer(key, nil) }

// NewIndexer returns a cache with indexes for objects of any type. key returns the key of an object.
func NewIndexer(key KeyFunc, indexers Indexers) Indexer {
	s := &store[keyed]{
		indexer:  indexer.New(keyOfKeyed, indexer.Options{}),
		key:      key,
		wrap:     func(key string, obj any) (keyed, error) { return keyed{key, obj}, nil },
		unwrap:   func(k keyed) any { return k.obj },
		keyOf:    func(k keyed) string { return k.key },
		indexers: Indexers{},
	}
	s.mustAdd(indexers)
	return s
}

// newFollowedStore returns the store of an informer.
func newFollowedStore(x *indexer.Indexer[held], indexers Indexers) *store[held] {
	s := &store[held]{
		indexer: x,
		key:     DeletionHandlingMetaNamespaceKeyFunc,
		wrap: func(_ string, obj any) (held, error) {
			o, ok := obj.(informer.Object)
			if !ok {
				return held{}, fmt.Errorf("a %T cannot be stored in an informer", obj)
			}
			return held{o, fromWrite}, nil
		},
		unwrap:   func(h held) any { return h.Object },
		keyOf:    func(h held) string { return informer.Key(h) },
		indexers: Indexers{},
		followed: true,
	}
	s.mustAdd(indexers)
	return s
}

func (s *store[T]) mustAdd(indexers Indexers) {
	if err := s.AddIndexers(indexers); err != nil {
		panic(err) // Cannot happen: the indexer is empty, and names in a map are distinct.
	}
}

// LastStoreSyncResourceVersion returns the highest resource version written, including those of deletions and
// bookmarks.
func (s *store[T]) LastStoreSyncResourceVersion() string { return s.indexer.ScopeResourceVersion(0) }

// Resync does nothing, as in client-go's store.
func (s *store[T]) Resync() error { return nil }

func (s *store[T]) List() []any {
	all := make([]any, 0, s.indexer.Len())
	for t := range s.indexer.All() {
		all = append(all, s.unwrap(t))
	}
	return all
}

func (s *store[T]) ListKeys() []string { return s.indexer.Keys() }

func (s *store[T]) Get(obj any) (item any, exists bool, err error) {
	key, err := s.key(obj)
	if err != nil {
		return nil, false, peer.KeyError{Obj: obj, Err: err}
	}
	return s.GetByKey(key)
}

func (s *store[T]) GetByKey(key string) (item any, exists bool, err error) {
	if t, found := s.indexer.Get(key); found {
		return s.unwrap(t), true, nil
	}
	return nil, false, nil
}

// Index returns the objects that share a value of that index with obj, without duplicates.
func (s *store[T]) Index(name string, obj any) ([]any, error) {
	f := s.indexFunc(name)
	if f == nil {
		return nil, noIndex(name)
	}
	values, err := f(obj)
	if err != nil {
		return nil, err
	}
	if len(values) == 1 {
		return s.ByIndex(name, values[0])
	}
	now := s.indexer.Snapshot() // All values are read from one state of the cache.
	defer now.Close()
	seen := map[string]bool{}
	all := []any{}
	for _, value := range values {
		objs, err := now.ByIndex(name, value)
		if err != nil {
			return nil, err
		}
		for _, t := range objs {
			if key := s.keyOf(t); !seen[key] {
				seen[key] = true
				all = append(all, s.unwrap(t))
			}
		}
	}
	return all, nil
}

func (s *store[T]) ByIndex(name, value string) ([]any, error) {
	objs, err := s.indexer.ByIndex(name, value)
	if err != nil {
		return nil, noIndex(name)
	}
	all := make([]any, len(objs))
	for i, t := range objs {
		all[i] = s.unwrap(t)
	}
	return all, nil
}

// IndexKeys returns the keys, sorted.
func (s *store[T]) IndexKeys(name, value string) ([]string, error) {
	keys, err := s.indexer.KeysByIndex(name, value)
	if err != nil {
		return nil, noIndex(name)
	}
	slices.Sort(keys)
	return keys, nil
}

func (s *store[T]) ListIndexFuncValues(name string) []string {
	values, err := s.indexer.IndexValues(name)
	if err != nil {
		return []string{}
	}
	return values
}

// GetIndexers returns a copy.
func (s *store[T]) GetIndexers() Indexers {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.indexers)
}

func (s *store[T]) indexFunc(name string) IndexFunc {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.indexers[name]
}

// AddIndexers adds all indexes, or none if a name is taken.
func (s *store[T]) AddIndexers(indexers Indexers) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range indexers {
		if s.indexers[name] != nil {
			return fmt.Errorf("indexer conflict: %s", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(indexers)) {
		f := indexers[name]
		if err := s.indexer.AddIndex(name, func(t T) ([]string, error) { return f(s.unwrap(t)) }); err != nil {
			return err
		}
		s.indexers[name] = f
	}
	return nil
}

// noIndex returns an error worded as in client-go.
func noIndex(name string) error {
	return fmt.Errorf("Index with name %s does not exist", name)
} //nolint:staticcheck // See above.

var (
	_ peer.Indexer          = (*store[keyed])(nil)
	_ peer.TransactionStore = (*store[held])(nil)
)

// A store accepts every write, whatever the versions; see [deltafifo.AcceptAll]. Writing into the store of an informer
// calls no handler.

func (s *store[T]) Add(obj any) error { return s.upsert(obj) }

func (s *store[T]) Update(obj any) error { return s.upsert(obj) }

func (s *store[T]) upsert(obj any) error {
	t, version, err := s.incoming(obj)
	if err != nil {
		return err
	}
	return s.apply(deltafifo.Delta[T]{Type: deltafifo.Upsert, Object: t, ResourceVersion: version})
}

// incoming converts an object to an element of the indexer.
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

// versionOf returns the resource version that a write of obj moves the store to; "" if it does not move it.
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

// Delete removes the object with obj's key. obj may be a DeletedFinalStateUnknown.
func (s *store[T]) Delete(obj any) error {
	key, err := s.key(obj)
	if err != nil {
		return peer.KeyError{Obj: obj, Err: err}
	}
	return s.apply(s.removal(key, obj))
}

// removal returns the delta that deletes key. If obj is a DeletedFinalStateUnknown, removal takes the last known state
// from the store.
func (s *store[T]) removal(key string, obj any) deltafifo.Delta[T] {
	if _, unknown := obj.(DeletedFinalStateUnknown); !unknown {
		if t, err := s.wrap(key, obj); err == nil {
			return deltafifo.Delta[T]{Type: deltafifo.Delete, Object: t, ResourceVersion: s.versionOf(obj)}
		}
	}
	if t, found := s.indexer.Get(key); found {
		return deltafifo.Delta[T]{Type: deltafifo.Delete, Object: t}
	}
	return deltafifo.Delta[T]{Type: deltafifo.Bookmark} // Does nothing, because there is nothing to delete.
}

// Replace makes the store hold exactly the objects of list.
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

// exchange is Replace in the store of an informer. It does not use [deltafifo.Replace]: the cache would take that for
// the informer's first list, and the informer would then never sync.
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

// Bookmark moves the resource version, but never backwards.
func (s *store[T]) Bookmark(version string) {
	// Apply fails only for an object without a key, and a bookmark has no object.
	_ = s.apply(deltafifo.Delta[T]{Type: deltafifo.Bookmark, ResourceVersion: version})
}

// Transaction writes all objects that have a key, and makes them visible in one step.
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

// delta converts one write of a transaction.
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
