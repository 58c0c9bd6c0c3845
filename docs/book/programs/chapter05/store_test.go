// Package chapter05 has the programs of chapter 5 of the book: the obvious index, and what a reader does to it that
// changes what it got. Its tests run them and write the traces, tables and figures of docs/book/05-indexer.md.
package chapter05

import corev1 "k8s.io/api/core/v1"

// A store is the first idea of a cache with an index: a map of objects, and a map of sets of their keys. It is how
// client-go's works.
type store struct {
	objects map[string]*corev1.Pod
	// value says under which value the index has an object.
	value func(*corev1.Pod) string
	index map[string]map[string]bool
}

// Set puts a new state of an object into the store.
func (s *store) Set(now *corev1.Pod) {
	old := s.objects[now.Name]
	s.objects[now.Name] = now
	if old != nil {
		if s.value(old) == s.value(now) {
			return // The usual case.
		}
		s.remove(now.Name, s.value(old))
	}
	if s.index[s.value(now)] == nil {
		s.index[s.value(now)] = map[string]bool{}
	}
	s.index[s.value(now)][now.Name] = true
}

// Delete takes an object out of the store.
func (s *store) Delete(name string) {
	if old := s.objects[name]; old != nil {
		s.remove(name, s.value(old))
		delete(s.objects, name)
	}
}

func (s *store) remove(name, value string) {
	delete(s.index[value], name)
	if len(s.index[value]) == 0 {
		delete(s.index, value)
	}
}

// ByIndex returns the objects that the index has under a value.
func (s *store) ByIndex(value string) (found []*corev1.Pod) {
	for name := range s.index[value] {
		found = append(found, s.objects[name])
	}
	return found
}
