// Package chapter06 has the programs of chapter 6 of the book: a server in memory, and three ways to tell a quick and a
// slow handler what it says. Its tests run them and write the traces, tables and figures of docs/book/06-informers.md.
package chapter06

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/informer/listwatch"
)

type event = listwatch.Event[*corev1.Pod]

// A server has pods, and a history of their changes. It is a ListerWatcher.
type server struct {
	mu      sync.Mutex
	version int
	uids    int
	pods    map[string]*corev1.Pod
	history []event
	// forgotten is up to which version the history is gone.
	forgotten int
	// changed is closed when the history gets longer, or is forgotten.
	changed chan struct{}
	// down keeps watches and lists from working.
	down bool
	// asked lists the requests.
	asked []string
	// after, if not nil, is called after each change.
	after func()
}

func newServer() *server {
	return &server{pods: map[string]*corev1.Pod{}, changed: make(chan struct{})}
}

// put makes a pod, or a new state of it, and returns the version.
func (s *server) put(name string) int {
	defer s.settle()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	p, kind := s.pods[name].DeepCopy(), listwatch.Modified
	if p == nil {
		s.uids++
		kind = listwatch.Added
		p = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(fmt.Sprint("u", s.uids))}}
	}
	p.ResourceVersion = strconv.Itoa(s.version)
	s.pods[name] = p
	s.note(event{Type: kind, Object: p, ResourceVersion: p.ResourceVersion})
	return s.version
}

// remove deletes a pod.
func (s *server) remove(name string) {
	defer s.settle()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	p := s.pods[name].DeepCopy()
	p.ResourceVersion = strconv.Itoa(s.version)
	delete(s.pods, name)
	s.note(event{Type: listwatch.Removed, Object: p, ResourceVersion: p.ResourceVersion})
}

func (s *server) settle() {
	if s.after != nil {
		s.after()
	}
}

func (s *server) note(e event) {
	s.history = append(s.history, e)
	s.wake()
}

func (s *server) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// stop keeps clients out, and breaks their watches; start lets them in again. In between the history is forgotten.
func (s *server) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = true
	s.wake()
}

func (s *server) start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down, s.forgotten = false, s.version
}

// requests returns the requests since the last call.
func (s *server) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := s.asked
	s.asked = nil
	return asked
}

func (s *server) List(_ context.Context, o listwatch.ListOptions, yield func(*corev1.Pod) error) (
	listwatch.ListResult, error,
) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return listwatch.ListResult{}, apierrors.NewServiceUnavailable("the server is down")
	}
	s.asked = append(s.asked, "list")
	for _, name := range slices.Sorted(maps.Keys(s.pods)) {
		if err := yield(s.pods[name]); err != nil {
			return listwatch.ListResult{}, err
		}
	}
	return listwatch.ListResult{ResourceVersion: strconv.Itoa(max(s.version, 1))}, nil
}

func (s *server) Watch(_ context.Context, o listwatch.WatchOptions) (listwatch.Watch[*corev1.Pod], error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	from, err := strconv.Atoi(o.ResourceVersion)
	switch {
	case err != nil:
		return nil, err
	case s.down:
		return nil, apierrors.NewServiceUnavailable("the server is down")
	case from < s.forgotten:
		return nil, apierrors.NewResourceExpired("too old")
	}
	s.asked = append(s.asked, "watch")
	at, _ := slices.BinarySearchFunc(s.history, from+1, func(e event, version int) int {
		v, _ := strconv.Atoi(e.ResourceVersion)
		return cmp.Compare(v, version)
	})
	return &watch{s, at}, nil
}

// A watch is at a position of the history.
type watch struct {
	s  *server
	at int
}

func (w *watch) Next(ctx context.Context) (event, error) {
	for {
		e, changed, err := w.next()
		if changed == nil {
			return e, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return event{}, ctx.Err()
		}
	}
}

// next returns the next event, or what to wait for.
func (w *watch) next() (e event, changed <-chan struct{}, err error) {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	switch {
	case w.s.down:
		return e, nil, apierrors.NewServiceUnavailable("the server is down")
	case w.at == len(w.s.history):
		return e, w.s.changed, nil
	}
	w.at++
	return w.s.history[w.at-1], nil, nil
}

func (w *watch) Close() error { return nil }
