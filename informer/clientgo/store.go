package clientgo

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	peer "k8s.io/client-go/tools/cache"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/indexer"
)

// store is client-go's Indexer over an indexer.Indexer: of keyed for a store that a program makes itself, of held
// for that of an informer. This file reads; storewrite.go writes.
type store[T any] struct {
	indexer *indexer.Indexer[T]
	key     KeyFunc
	// wrap makes of an object what the indexer holds, and unwrap the object of that.
	wrap   func(key string, obj any) (T, error)
	unwrap func(T) any
	keyOf  func(T) string
	// followed says that a reflector writes to the indexer: its resource version is then the reflector's alone, since
	// a list that is older than it would not be taken.
	followed bool

	mu sync.Mutex
	// indexers is what GetIndexers returns.
	indexers Indexers
}

// NewStore returns a cache of objects of any type, named by key.
func NewStore(key KeyFunc) Store { return NewIndexer(key, nil) }

// NewIndexer returns a cache with indexes of objects of any type, named by key.
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

// newFollowedStore is the store of an informer.
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
		panic(err) // The indexer is empty, and names in a map are distinct.
	}
}

// LastStoreSyncResourceVersion is the highest resource version written, deletions and bookmarks included.
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

// Index returns the objects that share a value of that index with obj, each once.
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
	now := s.indexer.Snapshot() // One state of the cache for all values.
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

// IndexKeys returns the keys in order.
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

// AddIndexers adds all or, when a name is taken, none.
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

// noIndex is worded as in client-go.
func noIndex(name string) error {
	return fmt.Errorf("Index with name %s does not exist", name)
} //nolint:staticcheck // See above.

var (
	_ peer.Indexer          = (*store[keyed])(nil)
	_ peer.TransactionStore = (*store[held])(nil)
)
