// Package store is task 05b: a cache that grows, although it holds no more objects than before.
//
// A Store holds objects and finds them by namespace. Many namespaces of this cluster exist for a few minutes only: each
// run of a test suite creates one, with a few objects, and deletes it at the end.
//
// For weeks the number of objects in the cache stays the same, but the memory grows until the process is killed.
// client-go v0.16.4 has this bug in tools/cache/thread_safe_store.go, and kubernetes/kubernetes#84959 reports it.
//
// Run the tests, read the code, and find out what is kept. Before you change anything, say what the Store should hold
// after its last object was deleted.
package store

import (
	"slices"
	"strings"
	"sync"

	"github.com/flyball-dev/flyball/exercises/kube"
)

// Store holds objects by key, and finds them by namespace.
type Store struct {
	mu      sync.RWMutex
	objects map[string]*kube.Object
	// sets has the keys of the objects in each namespace.
	sets map[string]map[string]bool
}

// New returns an empty Store.
func New() *Store {
	return &Store{objects: map[string]*kube.Object{}, sets: map[string]map[string]bool{}}
}

// Set puts a new state of an object into the Store.
func (s *Store) Set(o *kube.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects[o.Key()] = o
	s.set(o.Namespace)[o.Key()] = true
}

// Delete removes an object from the Store.
func (s *Store) Delete(o *kube.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.objects, o.Key())
	delete(s.set(o.Namespace), o.Key())
}

// Replace makes the Store hold exactly the given objects.
func (s *Store) Replace(list []*kube.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects = map[string]*kube.Object{}
	for _, keys := range s.sets {
		clear(keys)
	}
	for _, o := range list {
		s.objects[o.Key()] = o
		s.set(o.Namespace)[o.Key()] = true
	}
}

// set returns the set of a namespace's keys, which the caller may change. It makes the set if there is none.
func (s *Store) set(namespace string) map[string]bool {
	keys := s.sets[namespace]
	if keys == nil {
		keys = map[string]bool{}
		s.sets[namespace] = keys
	}
	return keys
}

// List returns the objects of a namespace, sorted by name.
func (s *Store) List(namespace string) []*kube.Object {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var all []*kube.Object
	for key := range s.sets[namespace] {
		all = append(all, s.objects[key])
	}
	slices.SortFunc(all, func(a, b *kube.Object) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Sets returns the number of sets. A metric shows it.
func (s *Store) Sets() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.sets)
}
