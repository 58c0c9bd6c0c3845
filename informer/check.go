package informer

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/informer/indexer"
	"github.com/flyball-dev/flyball/informer/objects"
	"github.com/flyball-dev/flyball/internal/cachecheck"
)

// Checks returns the factory's caches as package client compares them with what it wrote. It is of no use to others:
// what it returns is internal. It is called for every write, under the locks of others, so it takes no lock and makes
// no copy.
func (f *Factory) Checks() cachecheck.Caches {
	return cachecheck.Caches{History: f.server.Current(), All: *f.checks.Load()}
}

// setCachesLocked sets the caches, and publishes their checks for [Factory.Checks].
func (f *Factory) setCachesLocked(caches []*cache) {
	f.caches = caches
	all := make([]*cachecheck.Cache, 0, len(caches))
	for _, c := range caches {
		all = append(all, c.check)
	}
	f.checks.Store(&all)
}

// passed tells the check of the cache what a batch has shown.
func (s *SharedInformer[T]) passed(changes []indexer.Change[T]) {
	s.check.Passed(func(yield func(metav1.Object) bool) {
		for i := range changes {
			t := changes[i].Type
			if shows := t == indexer.ChangeAdd || t == indexer.ChangeUpdate; shows && !yield(changes[i].New) {
				return
			}
		}
	})
}

// checked is an informer as a [cachecheck.Store].
type checked[T objects.Object] struct{ *SharedInformer[T] }

func (c checked[T]) Get(namespace, name string) (metav1.Object, bool) {
	return c.SharedInformer.Get(namespace, name)
}

func (c checked[T]) Rebuilds() (n int64) {
	for _, src := range c.sources {
		n += src.status.Rebuilds.Load()
	}
	return n
}

func (c checked[T]) Relist(namespace string) {
	c.server.Lost() // Whoever lists next asks who the server is.
	for _, src := range c.sources {
		if src.namespace == "" || src.namespace == namespace {
			src.status.Interrupt()
		}
	}
}
