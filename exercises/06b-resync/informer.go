// Package informer is task 06b: a handler that misses a change.
//
// Informer is a small cache with handlers. Event is called for the events of a watch. After the watch has broken, List
// is called with all objects. Resync repeats the content of the cache to the handlers that asked for it.
//
// A program missed changes. It happened after the network had been down for a moment, and only to handlers without a
// resync: the cache had the new state, but the handler was never called. client-go v0.17.0 has this bug in
// tools/cache/shared_informer.go, and kubernetes/kubernetes#86015 fixes it.
//
// Run the tests, read the code, and find out what a list and a resync have in common here. Before you change anything,
// say how the code could distinguish a change from a repetition.
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
func (i *Informer) Event(o *kube.Object) { i.update(o, false) }

// Deleted is called for each event of the watch with a deletion.
func (i *Informer) Deleted(name string) {
	if old := i.cache[name]; old != nil {
		delete(i.cache, name)
		i.tell(old, nil, false)
	}
}

// List is called with all objects after the watch has broken. Handlers must be called for the objects that have
// changed, and for no others.
func (i *Informer) List(list []*kube.Object) {
	listed := map[string]bool{}
	for _, o := range list {
		listed[o.Name] = true
		i.update(o, true)
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
		i.update(i.cache[name], true)
	}
}

// update puts a state into the cache and calls handlers.
func (i *Informer) update(now *kube.Object, sync bool) {
	old := i.cache[now.Name]
	i.cache[now.Name] = now
	i.tell(old, now, sync)
}

// tell calls the handlers for a change, or only those in resyncing if sync is set.
func (i *Informer) tell(old, now *kube.Object, sync bool) {
	handlers := i.handlers
	if sync {
		handlers = i.resyncing
	}
	for _, h := range handlers {
		h(old, now)
	}
}
