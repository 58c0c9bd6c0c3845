// Package informer is task 06b: a handler that does not hear of a change.
//
// Informer is a cache with handlers, in small. Events of a watch come through Event. When the watch was broken, a list
// of all objects comes through List. Resync repeats the cache to those handlers that asked for it.
//
// A program missed changes. It happened after the network had been down for a moment, and only to handlers without a
// resync: the cache had the new state, and the handler was never called. client-go v0.17.0 has this bug in
// tools/cache/shared_informer.go, and kubernetes/kubernetes#86015 mends it.
//
// Run the tests, read the code, and find out what a list and a resync have in common here. Say how one can tell a
// change from a repetition, before you change anything.
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
func (i *Informer) Event(o Object) { i.update(&o, false) }

// Deleted is called for each event of the watch that has a deletion.
func (i *Informer) Deleted(name string) {
	if old := i.cache[name]; old != nil {
		delete(i.cache, name)
		i.tell(old, nil, false)
	}
}

// List is called with all objects that there are, after the watch was broken. Handlers hear of what has changed, and of
// nothing else.
func (i *Informer) List(list []Object) {
	listed := map[string]bool{}
	for _, o := range list {
		listed[o.Name] = true
		i.update(&o, true)
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
		i.update(i.cache[name], true)
	}
}

// update puts a state into the cache, and tells of it.
func (i *Informer) update(now *Object, sync bool) {
	old := i.cache[now.Name]
	i.cache[now.Name] = now
	i.tell(old, now, sync)
}

// tell calls the handlers.
func (i *Informer) tell(old, now *Object, sync bool) {
	handlers := i.handlers
	if sync {
		handlers = i.resyncing
	}
	for _, h := range handlers {
		h(old, now)
	}
}
