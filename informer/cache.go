package informer

import (
	"iter"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/informer/indexer"
	"github.com/flyball-dev/flyball/informer/objects"
)

// Cache is one cache of a [Factory], for code that compares the cache with what it knows from the server. Package
// writes compares it with the answers to this process's writes. To read objects, use an [Informer].
//
// Concurrency: all methods may be called from any goroutine.
type Cache interface {
	// Resource returns the plural name with the group, guessed from the kind. Health and Stats use the same name.
	Resource() string
	// IsOf reports whether the cache holds objects of the resource. It relies on the guess until discovery has named
	// the resource.
	IsOf(resource schema.GroupResource) bool
	// Selection describes the objects that the cache holds. Namespaces includes those of the factory; transforms are
	// left out. The caller must not change it.
	Selection() *InformerOptions
	// Get, HasSynced and NamespaceResourceVersion are those of [Informer].
	Get(namespace, name string) (Object, bool)
	HasSynced() bool
	NamespaceResourceVersion(namespace string) string
	// Rebuilds counts the lists that replaced the cache although objects in it had later versions.
	Rebuilds() int64

	// Observe calls f after each batch that the cache has applied, until stop is called. shown yields the states that
	// the batch added to the cache: none if it only moved the watermark. The goroutine that applies batches calls f
	// without a lock, and waits for it. f sees every batch that is applied after Observe has returned.
	Observe(f func(shown iter.Seq[Object])) (stop func())
	// Relist lists the objects of a namespace anew, and checks whether another server has taken the place of this one.
	// As long as why returns an error, Health reports it in Inconsistent.
	Relist(namespace string, why func() error)
}

// Caches returns the caches in use, in order of creation. The caller must not change the slice.
//
// Concurrency: package writes calls it for every write, with locks held. So it takes no lock and makes no copy.
func (f *Factory) Caches() []Cache { return *f.published.Load() }

// History numbers the histories of the server that the informers of the factory have noticed. See [Informer].
func (f *Factory) History() int64 { return f.server.Current() }

// setCachesLocked sets the caches, and publishes them for [Factory.Caches].
func (f *Factory) setCachesLocked(caches []*cache) {
	f.caches = caches
	published := make([]Cache, len(caches))
	for i, c := range caches {
		published[i] = c
	}
	f.published.Store(&published)
}

// Resource implements [Cache].
func (c *cache) Resource() string { return c.resource.String() }

// IsOf implements [Cache].
func (c *cache) IsOf(resource schema.GroupResource) bool {
	if found, ok := c.discovered(); ok {
		return found == resource
	}
	return c.resource == resource
}

// Selection implements [Cache].
func (c *cache) Selection() *InformerOptions { return &c.selection }

// Rebuilds implements [Cache].
func (c *cache) Rebuilds() int64 { return c.rebuilds() }

// Observe implements [Cache].
func (c *cache) Observe(f func(shown iter.Seq[Object])) (stop func()) { return c.observe(f) }

// Relist implements [Cache].
func (c *cache) Relist(namespace string, why func() error) { c.relist(namespace, why) }

func (s *SharedInformer[T]) rebuilds() (n int64) {
	for _, src := range s.sources {
		n += src.status.Rebuilds.Load()
	}
	return n
}

func (s *SharedInformer[T]) relist(namespace string, why func() error) {
	s.inconsistent.Store(&why)
	s.server.Lost() // The next list checks the identity of the server.
	for _, src := range s.sources {
		if src.namespace == "" || src.namespace == namespace {
			src.status.Interrupt()
		}
	}
}

func (s *SharedInformer[T]) observe(f func(shown iter.Seq[objects.Object])) (stop func()) {
	s.observing.Lock()
	defer s.observing.Unlock()
	s.observers = append(slices.Clip(s.observers), &f)
	return func() {
		s.observing.Lock()
		defer s.observing.Unlock()
		s.observers = slices.DeleteFunc(slices.Clone(s.observers), func(other *observer) bool { return other == &f })
	}
}

// notifyObservers calls the observers after a batch that made these changes.
func (s *SharedInformer[T]) notifyObservers(changes []indexer.Change[T]) {
	s.observing.Lock()
	observers := s.observers
	s.observing.Unlock()
	for _, f := range observers {
		(*f)(func(yield func(objects.Object) bool) {
			for i := range changes {
				t := changes[i].Type
				if shows := t == indexer.ChangeAdd || t == indexer.ChangeUpdate; shows && !yield(changes[i].New) {
					return
				}
			}
		})
	}
}

// observer is a function given to [Cache].Observe.
type observer = func(shown iter.Seq[objects.Object])
