package clientgo

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	peer "k8s.io/client-go/tools/cache"

	"github.com/flyball-dev/flyball/informer"
)

// store is client-go's Indexer over an informer.Indexer: of any for a store that a program makes itself, of
// informer.Object for that of an informer. What is written through it is taken as it is, whatever the versions.
type store[T any] struct {
	indexer *informer.Indexer[T]
	key     KeyFunc

	mu sync.Mutex
	// indexers is what GetIndexers returns.
	indexers Indexers
}

// NewStore returns a cache of objects of any type, named by key.
func NewStore(key KeyFunc) Store { return NewIndexer(key, nil) }

// NewIndexer returns a cache with indexes of objects of any type, named by key.
func NewIndexer(key KeyFunc, indexers Indexers) Indexer {
	named := func(obj any) (string, error) { return key(obj) }
	s := newStore(informer.NewIndexer(named, informer.IndexerOptions{}), key)
	if err := s.AddIndexers(indexers); err != nil {
		panic(err) // The indexer is empty and names in a map are distinct.
	}
	return s
}

func newStore[T any](x *informer.Indexer[T], key KeyFunc) *store[T] {
	return &store[T]{indexer: x, key: key, indexers: Indexers{}}
}

func (s *store[T]) Add(obj any) error    { return s.write(informer.DeltaUpsert, obj) }
func (s *store[T]) Update(obj any) error { return s.write(informer.DeltaUpsert, obj) }

// Delete removes what has obj's key; obj may be a DeletedFinalStateUnknown.
func (s *store[T]) Delete(obj any) error {
	key, err := s.key(obj)
	if err != nil {
		return KeyError{Obj: obj, Err: err}
	}
	held, found := s.indexer.Get(key)
	if !found {
		return nil
	}
	if last, ok := obj.(T); ok && !isTombstone(obj) {
		held = last
	}
	return s.write(informer.DeltaDelete, held)
}

func isTombstone(obj any) bool {
	_, is := obj.(DeletedFinalStateUnknown)
	return is
}

// write applies one delta.
func (s *store[T]) write(kind informer.DeltaType, obj any) error {
	t, ok := obj.(T)
	if !ok {
		return KeyError{Obj: obj, Err: fmt.Errorf("a %T cannot be stored here", obj)}
	}
	if _, err := s.key(obj); err != nil {
		return KeyError{Obj: obj, Err: err}
	}
	_, err := s.indexer.Apply([]informer.Delta[T]{{Type: kind, Object: t, ResourceVersion: versionOf(obj), Accept: informer.AcceptAll}})
	return err
}

// versionOf is the resource version of what has one.
func versionOf(obj any) string {
	if m, ok := obj.(metav1.Object); ok {
		return m.GetResourceVersion()
	}
	return ""
}

// Replace makes the store hold list and nothing else.
func (s *store[T]) Replace(list []any, rv string) error {
	objs := make([]T, 0, len(list))
	for _, obj := range list {
		t, ok := obj.(T)
		if !ok {
			return KeyError{Obj: obj, Err: fmt.Errorf("a %T cannot be stored here", obj)}
		}
		if _, err := s.key(obj); err != nil {
			return KeyError{Obj: obj, Err: err}
		}
		objs = append(objs, t)
	}
	_, err := s.indexer.Apply([]informer.Delta[T]{{Type: informer.DeltaReplace, Objects: objs, ResourceVersion: rv, Accept: informer.AcceptAll}})
	return err
}

// Bookmark moves the resource version.
func (s *store[T]) Bookmark(rv string) {
	_, _ = s.indexer.Apply([]informer.Delta[T]{{Type: informer.DeltaBookmark, ResourceVersion: rv}}) // Only keys fail.
}

// LastStoreSyncResourceVersion is the highest resource version written, deletions and bookmarks included.
func (s *store[T]) LastStoreSyncResourceVersion() string { return s.indexer.ScopeResourceVersion(0) }

// Resync does nothing, as in client-go's store.
func (s *store[T]) Resync() error { return nil }

func (s *store[T]) List() []any { return anys(s.indexer.List("", nil)) }

func (s *store[T]) ListKeys() []string { return s.indexer.Keys() }

func (s *store[T]) Get(obj any) (item any, exists bool, err error) {
	key, err := s.key(obj)
	if err != nil {
		return nil, false, KeyError{Obj: obj, Err: err}
	}
	return s.GetByKey(key)
}

func (s *store[T]) GetByKey(key string) (item any, exists bool, err error) {
	if t, found := s.indexer.Get(key); found {
		return t, true, nil
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
	seen := map[string]bool{}
	all := []any{}
	for _, value := range values {
		objs, err := s.ByIndex(name, value)
		if err != nil {
			return nil, err
		}
		for _, o := range objs {
			if key, err := s.key(o); err == nil && !seen[key] {
				seen[key] = true
				all = append(all, o)
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
	return anys(objs), nil
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
		if err := s.indexer.AddIndex(name, func(obj T) ([]string, error) { return f(obj) }); err != nil {
			return err
		}
		s.indexers[name] = f
	}
	return nil
}

// noIndex is worded as in client-go.
func noIndex(name string) error { return fmt.Errorf("Index with name %s does not exist", name) } //nolint:staticcheck // See above.

func anys[T any](objs []T) []any {
	all := make([]any, len(objs))
	for i, obj := range objs {
		all[i] = obj
	}
	return all
}

var _ peer.Indexer = (*store[any])(nil)
