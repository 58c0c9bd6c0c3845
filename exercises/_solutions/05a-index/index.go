// Package index is the solution of task 05a.
package index

import (
	"maps"
	"slices"
	"sync"
)

// Index finds objects by the values that a function gives them.
type Index[T any] struct {
	values func(T) ([]string, error)

	mu sync.RWMutex
	// under has the objects by value and then by key. It has no values without objects.
	under map[string]map[string]T
	// places has the values under which each key was put.
	places map[string][]string
}

// New returns an empty index.
func New[T any](values func(T) ([]string, error)) *Index[T] {
	return &Index[T]{values: values, under: map[string]map[string]T{}, places: map[string][]string{}}
}

// Set gives the object of that key a new state.
func (x *Index[T]) Set(key string, obj T) error {
	values, err := x.values(obj)
	if err != nil {
		values = nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.remove(key)
	for _, value := range values {
		if x.under[value] == nil {
			x.under[value] = map[string]T{}
		}
		x.under[value][key] = obj
	}
	if len(values) > 0 {
		x.places[key] = slices.Clone(values) // The function may reuse its slice.
	}
	return err
}

// Delete removes the object of that key.
func (x *Index[T]) Delete(key string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.remove(key)
}

// remove removes a key from all values under which it was put.
func (x *Index[T]) remove(key string) {
	for _, value := range x.places[key] {
		delete(x.under[value], key)
		if len(x.under[value]) == 0 {
			delete(x.under, value)
		}
	}
	delete(x.places, key)
}

// ByValue returns the objects under a value.
func (x *Index[T]) ByValue(value string) []T {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return slices.Collect(maps.Values(x.under[value]))
}

// Values returns the values that have an object.
func (x *Index[T]) Values() []string {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return slices.Collect(maps.Keys(x.under))
}
