package informer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/informer/objects"
)

// object is the type of the tests. It has only metadata, because the pipeline uses nothing else.
type object = *metav1.PartialObjectMetadata

// server is a scripted API server of one resource, in memory. It is a ListerWatcher, and records its requests.
type server struct {
	mu   sync.Mutex
	rv   int
	uids int
	// writes counts all writes. It is an object's generation, which distinguishes states that have the same version
	// before and after the history went back.
	writes  int64
	objects map[string]object
	history []listwatch.Event[object]
	// compacted is the resource version up to which the history is gone. base has the objects at that version.
	compacted int
	base      map[string]object
	// listErrs and watchErrs are returned before anything else. A nil element lets one request through.
	listErrs, watchErrs []error
	watches             []*serverWatch
	requests            []string
	// stale, if set, is the answer to lists that may be old.
	stale *serverPage
	// tokens has the remaining pages of lists.
	tokens map[string]serverPage
	// endless keeps streamed lists from being completed.
	endless bool
}

type serverPage struct {
	rv      int
	objects []object
}

func newServer() *server {
	return &server{rv: 1, objects: map[string]object{}, tokens: map[string]serverPage{}}
}

// put creates or changes an object, in its default namespace, and returns its new resource version.
func (s *server) put(name string) int { return s.putIn("default", name) }

func (s *server) putIn(namespace, name string) int { return s.write(namespace, name, nil) }

// garble gives an object a state that cannot be decoded.
func (s *server) garble(namespace, name string) {
	s.write(namespace, name, map[string]string{"garbled": "yes"})
}

func (s *server) write(namespace, name string, annotations map[string]string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rv++
	key := objects.KeyOf(namespace, name)
	kind := listwatch.Modified
	obj := s.objects[key].DeepCopy()
	if obj == nil {
		s.uids++
		kind = listwatch.Added
		obj = &metav1.PartialObjectMetadata{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("u" + strconv.Itoa(s.uids))},
		}
	}
	s.writes++
	obj.ResourceVersion, obj.Annotations, obj.Generation = strconv.Itoa(s.rv), annotations, s.writes
	s.objects[key] = obj
	s.emit(listwatch.Event[object]{Type: kind, Object: obj})
	return s.rv
}

// remove deletes an object.
func (s *server) remove(name string) { s.removeIn("default", name) }

func (s *server) removeIn(namespace, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := objects.KeyOf(namespace, name)
	obj := s.objects[key].DeepCopy()
	delete(s.objects, key)
	s.rv++
	obj.ResourceVersion = strconv.Itoa(s.rv)
	s.emit(listwatch.Event[object]{Type: listwatch.Removed, Object: obj})
}

// bookmark sends a bookmark with the version rv to all watches; 0 means the current version.
func (s *server) bookmark(rv int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if rv == 0 {
		rv = s.rv
	}
	for _, w := range s.watches {
		w.send(listwatch.Event[object]{Type: listwatch.Bookmark, ResourceVersion: strconv.Itoa(rv)}, nil)
	}
}

// inject sends all watches an event that is not in the history.
func (s *server) inject(ev listwatch.Event[object]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.watches {
		w.send(ev, nil)
	}
}

// repeat sends the event again that happened so many events ago.
func (s *server) repeat(ago int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := len(s.history) - 1 - ago; i >= 0 {
		for _, w := range s.watches {
			w.send(s.history[i], nil)
		}
	}
}

// cut ends all watches with err.
func (s *server) cut(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.watches {
		w.send(listwatch.Event[object]{}, err)
	}
	s.watches = nil
}

// compact forgets the history.
func (s *server) compact() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.compacted, s.history, s.base = s.rv, nil, maps.Clone(s.objects)
	clear(s.tokens)
}

// restore takes the server back to the objects that it had at resource version rv.
func (s *server) restore(rv int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects = map[string]object{}
	maps.Copy(s.objects, s.base)
	for i, ev := range s.history {
		if v, _ := strconv.Atoi(ev.ResourceVersion); v > rv {
			s.history = s.history[:i:i]
			break
		}
		if ev.Type == listwatch.Removed {
			delete(s.objects, Key(ev.Object))
		} else {
			s.objects[Key(ev.Object)] = ev.Object
		}
	}
	s.rv, s.compacted, s.history, s.base = rv, rv, nil, maps.Clone(s.objects)
	clear(s.tokens)
}

// fail makes the next lists and watches fail.
func (s *server) fail(lists, watches []error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listErrs, s.watchErrs = append(s.listErrs, lists...), append(s.watchErrs, watches...)
}

// lag makes lists that may be old return the present objects from now on.
func (s *server) lag() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stale = &serverPage{rv: s.rv, objects: slices.Collect(maps.Values(s.objects))}
}

// recover ends all failures.
func (s *server) recover() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listErrs, s.watchErrs = nil, nil
}

// has reports whether there is an object of that name.
func (s *server) has(namespace, name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.objects[objects.KeyOf(namespace, name)] != nil
}

// garbled returns the error for decoding obj; nil if it can be decoded.
func garbled(obj object) *objects.DecodeError {
	if obj == nil || obj.Annotations["garbled"] == "" {
		return nil
	}
	return &objects.DecodeError{
		What: "object " + Key(obj), Err: errors.New("garbled"), Key: Key(obj), UID: obj.UID,
		Version: obj.ResourceVersion,
	}
}

func (s *server) emit(ev listwatch.Event[object]) {
	ev.ResourceVersion = ev.Object.ResourceVersion
	s.history = append(s.history, ev)
	for _, w := range s.watches {
		w.send(ev, nil)
	}
}

func (s *server) List(ctx context.Context, o listwatch.ListOptions,
	yield func(object) error,
) (listwatch.ListResult, error) {
	page, result, err := s.page(o)
	if err != nil {
		return result, err
	}
	for _, obj := range page {
		if e := garbled(obj); e != nil {
			o.Unreadable(e)
			continue
		}
		if err := yield(obj); err != nil {
			return result, err
		}
	}
	return result, ctx.Err()
}

func (s *server) page(o listwatch.ListOptions) ([]object, listwatch.ListResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests,
		fmt.Sprintf("list rv=%q match=%s limit=%d continue=%q", o.ResourceVersion, o.Match, o.Limit, o.Continue))
	if len(s.listErrs) > 0 {
		err := s.listErrs[0]
		s.listErrs = s.listErrs[1:]
		if err != nil {
			return nil, listwatch.ListResult{}, err
		}
	}
	var page serverPage
	switch rv, _ := strconv.Atoi(o.ResourceVersion); {
	case o.Continue != "":
		p, ok := s.tokens[o.Continue]
		if !ok {
			return nil, listwatch.ListResult{}, errExpired
		}
		page = p
	case s.stale != nil && o.ResourceVersion != "":
		page = *s.stale
	case rv > s.rv:
		return nil, listwatch.ListResult{}, errTooLarge()
	default:
		page.rv = s.rv
		for _, key := range slices.Sorted(maps.Keys(s.objects)) {
			page.objects = append(page.objects, s.objects[key])
		}
	}
	result := listwatch.ListResult{ResourceVersion: strconv.Itoa(page.rv)}
	if n := int(o.Limit); n > 0 && len(page.objects) > n {
		result.Continue = fmt.Sprintf("%d-%d", page.rv, len(page.objects)-n)
		s.tokens[result.Continue] = serverPage{page.rv, page.objects[n:]}
		page.objects = page.objects[:n]
	}
	return page.objects, result, nil
}

func (s *server) Watch(ctx context.Context, o listwatch.WatchOptions) (listwatch.Watch[object], error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	stream := ""
	if o.SendInitialEvents {
		stream = " with initial events"
	}
	s.requests = append(s.requests, fmt.Sprintf("watch rv=%q%s", o.ResourceVersion, stream))
	if len(s.watchErrs) > 0 {
		err := s.watchErrs[0]
		s.watchErrs = s.watchErrs[1:]
		if err != nil {
			return nil, err
		}
	}
	w := &serverWatch{ready: make(chan struct{}, 1)}
	if o.SendInitialEvents {
		s.stream(w)
		return w, nil
	}
	from, _ := strconv.Atoi(o.ResourceVersion)
	if from < s.compacted {
		w.send(listwatch.Event[object]{}, errExpired)
		return w, nil
	}
	for _, ev := range s.history {
		if v, _ := strconv.Atoi(ev.ResourceVersion); v > from {
			w.send(ev, nil)
		}
	}
	s.watches = append(s.watches, w)
	return w, nil
}

// stream begins w with the present objects.
func (s *server) stream(w *serverWatch) {
	for _, key := range slices.Sorted(maps.Keys(s.objects)) {
		o := s.objects[key]
		w.send(listwatch.Event[object]{Type: listwatch.Added, Object: o, ResourceVersion: o.ResourceVersion}, nil)
	}
	if !s.endless {
		version := strconv.Itoa(s.rv)
		w.send(listwatch.Event[object]{
			Type: listwatch.Bookmark, ResourceVersion: version, InitialEventsEnd: true,
		}, nil)
	}
	s.watches = append(s.watches, w)
}

// asked returns the requests since the last call.
func (s *server) asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.requests
	s.requests = nil
	return r
}

type serverItem struct {
	ev  listwatch.Event[object]
	err error
}

// serverWatch is a stream of the server. Its size is unlimited: the server never waits.
type serverWatch struct {
	mu    sync.Mutex
	items []serverItem
	// ready gets a token when there are items. The server sends, Next receives, and it is never closed. Capacity 1.
	ready chan struct{}
}

func (w *serverWatch) send(ev listwatch.Event[object], err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.items = append(w.items, serverItem{ev, err})
	select {
	case w.ready <- struct{}{}:
	default:
	}
}

func (w *serverWatch) take() (it serverItem, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.items) == 0 {
		return it, false
	}
	it, w.items = w.items[0], w.items[1:]
	if e := garbled(it.ev.Object); e != nil {
		it.ev.Object, it.ev.Unreadable = nil, e
	}
	return it, true
}

func (w *serverWatch) Next(ctx context.Context) (listwatch.Event[object], error) {
	for {
		if ctx.Err() != nil {
			return listwatch.Event[object]{}, ctx.Err()
		}
		if it, ok := w.take(); ok {
			return it.ev, it.err
		}
		select {
		case <-w.ready:
		case <-ctx.Done():
		}
	}
}

func (w *serverWatch) Close() error { return nil }

// The errors of the scripts.
var (
	errExpired = apierrors.NewResourceExpired("too old resource version")
	errClosed  = io.EOF
)

func errTooLarge() error {
	err := apierrors.NewTimeoutError("Too large resource version: 9, current: 1", 1)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge}}
	return err
}

func errTooManyFor(seconds int) error { return apierrors.NewTooManyRequests("slow down", seconds) }
