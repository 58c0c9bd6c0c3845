package endpoints

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// world is a cache and a server in one, so the cache is never behind. It also has the queue.
type world struct {
	services  map[string]*Service
	pods      map[string]*Pod
	endpoints map[string]*Endpoints
	writes    []string
	queue     []string
	broken    bool
}

func newWorld() (*world, *Controller) {
	w := &world{services: map[string]*Service{}, pods: map[string]*Pod{}, endpoints: map[string]*Endpoints{}}
	return w, &Controller{Cache: cache{w}, Writer: writer{w}, Queue: queue{w}}
}

type (
	cache  struct{ *world }
	writer struct{ *world }
	queue  struct{ *world }
)

func (w queue) Add(service string) {
	if !slices.Contains(w.queue, service) {
		w.world.queue = append(w.queue, service)
	}
}

// waiting returns what was queued, and empties the queue.
func (w *world) waiting() string {
	names := strings.Join(slices.Sorted(slices.Values(w.queue)), " ")
	w.queue = nil
	return names
}

func (w cache) Service(name string) (*Service, bool) {
	svc, found := w.services[name]
	return svc, found
}

func (w cache) Services() []*Service {
	return slices.SortedFunc(maps.Values(w.services), func(a, b *Service) int { return cmp.Compare(a.Name, b.Name) })
}

func (w cache) Pods() []*Pod {
	return slices.SortedFunc(maps.Values(w.pods), func(a, b *Pod) int { return cmp.Compare(b.Name, a.Name) })
}

func (w cache) Endpoints(name string) (*Endpoints, bool) {
	e, found := w.endpoints[name]
	return e, found
}

var errBroken = errors.New("the server is broken")

func (w writer) write(verb string, e *Endpoints, exists bool) error {
	_, found := w.endpoints[e.Name]
	w.writes = append(w.writes, verb+" "+e.Name)
	switch {
	case w.broken:
		return errBroken
	case found != exists:
		return fmt.Errorf("%s: there are such Endpoints: %v", verb, found)
	}
	w.endpoints[e.Name] = &Endpoints{e.Name, slices.Clone(e.Ready), slices.Clone(e.NotReady)}
	return nil
}

func (w writer) Create(e *Endpoints) error { return w.write("create", e, false) }

func (w writer) Update(e *Endpoints) error { return w.write("update", e, true) }

func (w writer) Delete(name string) error {
	w.writes = append(w.writes, "delete "+name)
	if w.broken {
		return errBroken
	}
	delete(w.endpoints, name)
	return nil
}

// said returns the writes since the last call, in words.
func (w *world) said() string {
	text := strings.Join(w.writes, ", ")
	w.writes = nil
	return text
}
