package endpoints

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/flyball-dev/flyball/exercises/kube"
)

// world is a cache and a server in one, so the cache is never behind. It also has the queue.
type world struct {
	services  map[string]*kube.Service
	pods      map[string]*kube.Pod
	endpoints map[string]*kube.Endpoints
	writes    []string
	queue     []string
	broken    bool
}

func newWorld() (*world, *Controller) {
	w := &world{
		services: map[string]*kube.Service{}, pods: map[string]*kube.Pod{}, endpoints: map[string]*kube.Endpoints{},
	}
	return w, &Controller{Cache: cache{w}, Writer: writer{w}, Queue: queue{world: w}}
}

type (
	cache  struct{ *world }
	writer struct{ *world }
	queue  struct {
		kube.Queue
		*world
	}
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

func (w cache) Service(name string) (*kube.Service, bool) {
	svc, found := w.services[name]
	return svc, found
}

func (w cache) Services(namespace string) []*kube.Service {
	return slices.DeleteFunc(slices.SortedFunc(maps.Values(w.services), func(a, b *kube.Service) int {
		return cmp.Compare(a.Name, b.Name)
	}), func(s *kube.Service) bool { return s.Namespace != namespace })
}

func (w cache) Pods(namespace string) []*kube.Pod {
	all := slices.SortedFunc(maps.Values(w.pods), func(a, b *kube.Pod) int { return cmp.Compare(b.Name, a.Name) })
	return slices.DeleteFunc(all, func(p *kube.Pod) bool { return p.Namespace != namespace })
}

func (w cache) Endpoints(name string) (*kube.Endpoints, bool) {
	e, found := w.endpoints[name]
	return e, found
}

var errBroken = errors.New("the server is broken")

func (w writer) write(verb string, e *kube.Endpoints, exists bool) error {
	_, found := w.endpoints[e.Key()]
	w.writes = append(w.writes, fmt.Sprintf("%s %s: %s", verb, e.Key(), addresses(e)))
	switch {
	case w.broken:
		return errBroken
	case found != exists:
		return fmt.Errorf("%s: there are such Endpoints: %v", verb, found)
	}
	stored := *e
	stored.Ready, stored.NotReady = slices.Clone(e.Ready), slices.Clone(e.NotReady)
	w.endpoints[e.Key()] = &stored
	return nil
}

func (w writer) Create(e *kube.Endpoints) error { return w.write("create", e, false) }

func (w writer) Update(e *kube.Endpoints) error { return w.write("update", e, true) }

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
