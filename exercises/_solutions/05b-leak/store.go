// Package store is the solution of task 05b.
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
	delete(s.sets[o.Namespace], o.Key())
	if len(s.sets[o.Namespace]) == 0 {
		delete(s.sets, o.Namespace)
	}
}

// Replace makes the Store hold exactly the given objects.
func (s *Store) Replace(list []*kube.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects = map[string]*kube.Object{}
	clear(s.sets)
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
