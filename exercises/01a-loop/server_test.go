package loop

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/flyball-dev/flyball/exercises/kube"
)

// server is an API server in memory that records the writes.
type server struct {
	sets   map[string]Set
	pods   map[string]Pod
	writes []string

	// fail answers a call with an error: "list", "create web-1". The call has no effect.
	fail map[string]error
	// before is called before each write, so that a test can write first.
	before func(call string)
	// crashAfter is the number of the call after which the program dies; 0 means never.
	crashAfter, calls int
}

// crash is the panic of a call in which the program ends.
type crash struct{}

func newServer(sets ...Set) *server {
	s := &server{sets: map[string]Set{}, pods: map[string]Pod{}, fail: map[string]error{}}
	for _, set := range sets {
		set.Version = 1
		s.sets[set.Name] = set
	}
	return s
}

// add adds Pods. The label of a Pod is the part of its name before the "-".
func (s *server) add(names ...string) {
	for _, name := range names {
		set, _, _ := strings.Cut(name, "-")
		s.pods[name] = Pod{Name: name, Set: set}
	}
}

// names returns the names of all Pods.
func (s *server) names() string { return strings.Join(slices.Sorted(maps.Keys(s.pods)), " ") }

func (s *server) begin(call string) error { return s.fail[call] }

// end ends the program if this is the call after which it crashes.
func (s *server) end() {
	if s.calls++; s.calls == s.crashAfter {
		panic(crash{})
	}
}

// write records a write.
func (s *server) write(call string) error {
	if s.before != nil {
		s.before(call)
	}
	s.writes = append(s.writes, call)
	return s.begin(call)
}

func (s *server) Get(set string) (Set, error) {
	defer s.end()
	if err := s.begin("get"); err != nil {
		return Set{}, err
	}
	found, ok := s.sets[set]
	if !ok {
		return Set{}, kube.ErrNotFound
	}
	return found, nil
}

func (s *server) List(set string) ([]Pod, error) {
	defer s.end()
	if err := s.begin("list"); err != nil {
		return nil, err
	}
	var list []Pod
	for _, name := range slices.Sorted(maps.Keys(s.pods)) {
		if s.pods[name].Set == set {
			list = append(list, s.pods[name])
		}
	}
	return list, nil
}

func (s *server) Create(p Pod) error {
	defer s.end()
	if err := s.write("create " + p.Name); err != nil {
		return err
	}
	if _, taken := s.pods[p.Name]; taken {
		return kube.ErrExists
	}
	s.pods[p.Name] = p
	return nil
}

func (s *server) Delete(pod string) error {
	defer s.end()
	if err := s.write("delete " + pod); err != nil {
		return err
	}
	if _, there := s.pods[pod]; !there {
		return kube.ErrNotFound
	}
	delete(s.pods, pod)
	return nil
}

func (s *server) UpdateStatus(set Set) error {
	defer s.end()
	if err := s.write(fmt.Sprint("status ", set.Have)); err != nil {
		return err
	}
	found, ok := s.sets[set.Name]
	switch {
	case !ok:
		return kube.ErrNotFound
	case found.Version != set.Version:
		return kube.ErrConflict
	}
	found.Have = set.Have
	found.Version++
	s.sets[set.Name] = found
	return nil
}

// reconcile calls Reconcile in a program that may crash. It reports whether the program survived.
func (s *server) reconcile(set string) (lived bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			if _, died := p.(crash); !died {
				panic(p)
			}
		}
	}()
	err = Reconcile(s, set)
	return true, err
}
