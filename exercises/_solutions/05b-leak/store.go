// Package store is the solution of task 05b.
package store

import (
	"slices"
	"strings"
	"sync"
)

// Object is one state of an object.
type Object struct {
	Namespace, Name string
	Version         int
}

func (o Object) key() string { return o.Namespace + "/" + o.Name }

// Store holds objects by key, and finds them by namespace.
type Store struct {
	mu      sync.RWMutex
	objects map[string]Object
	// sets has the keys of the objects in each namespace.
	sets map[string]map[string]bool
}

// New returns an empty Store.
func New() *Store {
	return &Store{objects: map[string]Object{}, sets: map[string]map[string]bool{}}
}

// Set puts a new state of an object into the Store.
func (s *Store) Set(o Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects[o.key()] = o
	s.set(o.Namespace)[o.key()] = true
}

// Delete removes an object from the Store.
func (s *Store) Delete(o Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.objects, o.key())
	delete(s.sets[o.Namespace], o.key())
	if len(s.sets[o.Namespace]) == 0 {
		delete(s.sets, o.Namespace)
	}
}

// Replace makes the Store hold exactly the given objects.
func (s *Store) Replace(list []Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects = map[string]Object{}
	clear(s.sets)
	for _, o := range list {
		s.objects[o.key()] = o
		s.set(o.Namespace)[o.key()] = true
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
func (s *Store) List(namespace string) []Object {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var all []Object
	for key := range s.sets[namespace] {
		all = append(all, s.objects[key])
	}
	slices.SortFunc(all, func(a, b Object) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Sets returns the number of sets. A metric shows it.
func (s *Store) Sets() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.sets)
}
