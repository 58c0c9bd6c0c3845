// Package informer is the solution of task 06b.
package informer

import (
	"maps"
	"slices"
)

// Object is a state of an object. The server gives each state another version.
type Object struct {
	Name    string
	Version int
}

// Handler hears of what happens in the cache. Old is nil if the object is new to it, now if the object is gone. In a
// repetition both are the same.
type Handler func(old, now *Object)

// Informer is a cache with handlers.
type Informer struct {
	cache map[string]*Object
	// handlers hear of changes. Those of them that are in resyncing hear of repetitions as well.
	handlers, resyncing []Handler
}

// New returns an empty Informer.
func New() *Informer { return &Informer{cache: map[string]*Object{}} }

// AddHandler adds a handler. Resync says that it wants repetitions.
func (i *Informer) AddHandler(h Handler, resync bool) {
	i.handlers = append(i.handlers, h)
	if resync {
		i.resyncing = append(i.resyncing, h)
	}
}

// Event is called for each event of the watch that has a new state.
func (i *Informer) Event(o Object) { i.update(&o) }

// Deleted is called for each event of the watch that has a deletion.
func (i *Informer) Deleted(name string) {
	if old := i.cache[name]; old != nil {
		delete(i.cache, name)
		call(i.handlers, old, nil)
	}
}

// List is called with all objects that there are, after the watch was broken. Handlers hear of what has changed, and of
// nothing else.
func (i *Informer) List(list []Object) {
	listed := map[string]bool{}
	for _, o := range list {
		listed[o.Name] = true
		if old := i.cache[o.Name]; old == nil || old.Version != o.Version {
			i.update(&o)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(i.cache)) {
		if !listed[name] {
			i.Deleted(name)
		}
	}
}

// Resync repeats the cache to those handlers that asked for it.
func (i *Informer) Resync() {
	for _, name := range slices.Sorted(maps.Keys(i.cache)) {
		call(i.resyncing, i.cache[name], i.cache[name])
	}
}

// update puts a state into the cache, and tells of it.
func (i *Informer) update(now *Object) {
	old := i.cache[now.Name]
	i.cache[now.Name] = now
	call(i.handlers, old, now)
}

// call calls handlers.
func call(handlers []Handler, old, now *Object) {
	for _, h := range handlers {
		h(old, now)
	}
}
