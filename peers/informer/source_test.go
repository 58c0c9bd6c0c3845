package informer

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// source is a server of pods in memory, and a client of it: a cache.ListerWatcher. It lists, streams lists when told
// that it can, keeps history until compacted, and notes what it is asked.
type source struct {
	streams bool

	mu        sync.Mutex
	rv, uids  int
	pods      map[string]*corev1.Pod
	history   []watch.Event
	compacted int
	open      []*connection
	requests  []string
	// refuse, when set, answers every request.
	refuse error
}

func newSource(streams bool, names ...string) *source {
	s := &source{streams: streams, rv: 1, pods: map[string]*corev1.Pod{}}
	for _, name := range names {
		s.put(name)
	}
	return s
}

// IsWatchListSemanticsUnSupported is how clients say that they cannot stream lists.
func (s *source) IsWatchListSemanticsUnSupported() bool { return !s.streams }

// put creates or changes a pod in namespace a.
func (s *source) put(name string, labels ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.putLocked(name, labels...)
}

func (s *source) putLocked(name string, labels ...string) {
	s.rv++
	kind, old := watch.Modified, s.pods[name]
	p := pod("a", name, strconv.Itoa(s.rv), labels...)
	if old == nil {
		s.uids++
		kind, p.UID = watch.Added, types.UID("u"+strconv.Itoa(s.uids))
	} else {
		p.UID = old.UID
	}
	s.pods[name] = p
	s.emitLocked(watch.Event{Type: kind, Object: p})
}

func (s *source) remove(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.removeLocked(name)
}

func (s *source) removeLocked(name string) {
	s.rv++
	p := s.pods[name].DeepCopy()
	p.ResourceVersion = strconv.Itoa(s.rv)
	delete(s.pods, name)
	s.emitLocked(watch.Event{Type: watch.Deleted, Object: p})
}

// emitLocked sends an event and remembers it.
func (s *source) emitLocked(ev watch.Event) {
	s.history = append(s.history, ev)
	for _, c := range s.open {
		c.send(ev)
	}
}

// inject sends an event that is in no history.
func (s *source) inject(kind watch.EventType, obj runtime.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.open {
		c.send(watch.Event{Type: kind, Object: obj})
	}
}

// bookmark tells all watches how far the server has got.
func (s *source) bookmark() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rv++
	for _, c := range s.open {
		c.send(watch.Event{Type: watch.Bookmark, Object: pod("", "", strconv.Itoa(s.rv))})
	}
}

// cut ends all watches in good order.
func (s *source) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cutLocked()
}

func (s *source) cutLocked() {
	for _, c := range s.open {
		close(c.events)
	}
	s.open = nil
}

// cutInTime ends all watches when they have lasted as long as they were asked for.
func (s *source) cutInTime() {
	s.mu.Lock()
	due := time.Now()
	for _, c := range s.open {
		if c.due.After(due) {
			due = c.due
		}
	}
	s.mu.Unlock()
	time.Sleep(time.Until(due))
	s.cut()
}

// gap runs f unobserved: it cuts the watches before, and forgets the history after.
func (s *source) gap(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cutLocked()
	f()
	s.compacted, s.history = s.rv, nil
}

// refuseWith makes every request fail; nil ends that.
func (s *source) refuseWith(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse = err
}

// asked returns the requests since the last call.
func (s *source) asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.requests
	s.requests = nil
	return r
}

func (s *source) sortedLocked() []*corev1.Pod {
	var all []*corev1.Pod
	for _, name := range slices.Sorted(maps.Keys(s.pods)) {
		all = append(all, s.pods[name].DeepCopy())
	}
	return all
}

func (s *source) List(o metav1.ListOptions) (runtime.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, fmt.Sprintf("list %q", o.ResourceVersion))
	if s.refuse != nil {
		return nil, s.refuse
	}
	list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(s.rv)}}
	for _, p := range s.sortedLocked() {
		list.Items = append(list.Items, *p)
	}
	return list, nil
}

func (s *source) Watch(o metav1.ListOptions) (watch.Interface, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &connection{of: s, events: make(chan watch.Event, 10000), due: time.Now()}
	if o.TimeoutSeconds != nil {
		c.due = c.due.Add(time.Duration(*o.TimeoutSeconds) * time.Second)
	}
	if o.SendInitialEvents != nil && *o.SendInitialEvents {
		s.requests = append(s.requests, fmt.Sprintf("stream %q", o.ResourceVersion))
		if s.refuse != nil {
			return nil, s.refuse
		}
		for _, p := range s.sortedLocked() {
			c.send(watch.Event{Type: watch.Added, Object: p})
		}
		end := pod("", "", strconv.Itoa(s.rv))
		end.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
		c.send(watch.Event{Type: watch.Bookmark, Object: end})
		s.open = append(s.open, c)
		return c, nil
	}
	s.requests = append(s.requests, fmt.Sprintf("watch %q", o.ResourceVersion))
	if s.refuse != nil {
		return nil, s.refuse
	}
	from, _ := strconv.Atoi(o.ResourceVersion)
	if from < s.compacted {
		return nil, apierrors.NewResourceExpired("too old resource version")
	}
	for _, ev := range s.history {
		if v, _ := strconv.Atoi(ev.Object.(*corev1.Pod).ResourceVersion); v > from {
			c.send(ev)
		}
	}
	s.open = append(s.open, c)
	return c, nil
}

// connection is an open watch. events is sent to and closed by the source, under its lock, and is large enough that
// it never waits.
type connection struct {
	of     *source
	events chan watch.Event
	// due is when the client wants it to end.
	due time.Time
}

func (c *connection) send(ev watch.Event) {
	ev.Object = ev.Object.DeepCopyObject()
	c.events <- ev
}

func (c *connection) ResultChan() <-chan watch.Event { return c.events }

func (c *connection) Stop() {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	c.of.open = slices.DeleteFunc(c.of.open, func(other *connection) bool { return other == c })
}
