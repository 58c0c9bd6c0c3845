// Package informer is the solution of task 06b.
package informer

import (
	"maps"
	"slices"

	"github.com/flyball-dev/flyball/exercises/kube"
)

// Handler is called for each change of the cache. old is nil if the object is new, and now is nil if it is gone. For a
// repetition both are the same.
type Handler func(old, now *kube.Object)

// Informer is a cache with handlers.
type Informer struct {
	cache map[string]*kube.Object
	// handlers are called for changes, and those in resyncing also for repetitions.
	handlers, resyncing []Handler
}

// New returns an empty Informer.
func New() *Informer { return &Informer{cache: map[string]*kube.Object{}} }

// AddHandler adds a handler. With resync it is also called for repetitions.
func (i *Informer) AddHandler(h Handler, resync bool) {
	i.handlers = append(i.handlers, h)
	if resync {
		i.resyncing = append(i.resyncing, h)
	}
}

// Event is called for each event of the watch with a new state.
func (i *Informer) Event(o *kube.Object) { i.update(o) }

// Deleted is called for each event of the watch with a deletion.
func (i *Informer) Deleted(name string) {
	if old := i.cache[name]; old != nil {
		delete(i.cache, name)
		call(i.handlers, old, nil)
	}
}

// List is called with all objects after the watch has broken. Handlers must be called for the objects that have
// changed, and for no others.
func (i *Informer) List(list []*kube.Object) {
	listed := map[string]bool{}
	for _, o := range list {
		listed[o.Name] = true
		if old := i.cache[o.Name]; old == nil || old.Version != o.Version {
			i.update(o)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(i.cache)) {
		if !listed[name] {
			i.Deleted(name)
		}
	}
}

// Resync repeats the content of the cache to the handlers that asked for it.
func (i *Informer) Resync() {
	for _, name := range slices.Sorted(maps.Keys(i.cache)) {
		call(i.resyncing, i.cache[name], i.cache[name])
	}
}

// update puts a state into the cache and calls handlers.
func (i *Informer) update(now *kube.Object) {
	old := i.cache[now.Name]
	i.cache[now.Name] = now
	call(i.handlers, old, now)
}

// call calls handlers.
func call(handlers []Handler, old, now *kube.Object) {
	for _, h := range handlers {
		h(old, now)
	}
}
