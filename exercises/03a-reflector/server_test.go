package reflector

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flyball-dev/flyball/exercises/kube"
)

var errBroken = errors.New("connection reset by peer")

// frame is a result of a watch's Next, after a delay.
type frame struct {
	after time.Duration
	event kube.Event
	err   error
}

// changed returns a frame with an event, and ended returns the frame at which a watch ends.
func changed(after time.Duration, kind, name string, version int) frame {
	return frame{after: after, event: kube.Event{Type: kind, Object: &kube.Object{Name: name, Version: version}}}
}

func ended(after time.Duration, err error) frame { return frame{after: after, err: err} }

// answer is the server's answer to one request. A watch sends frames, and then waits for the end of its timeout. If it
// is silent, it waits forever.
type answer struct {
	list   kube.List
	err    error
	frames []frame
	silent bool
}

// server answers from a script. When the script is at its end, it answers like a server on which nothing changes. It is
// also the cache.
type server struct {
	mu      sync.Mutex
	began   time.Time
	lists   []answer
	watches []answer
	log     []string
	told    []string
	open    int
	limit   int
}

func (s *server) note(format string, args ...any) {
	s.log = append(s.log, fmt.Sprintf("%v %s", time.Since(s.began), fmt.Sprintf(format, args...)))
	if s.limit++; s.limit > 1000 {
		panic("the server gets requests in a loop without a pause")
	}
}

// List implements kube.Server.
func (s *server) List(ctx context.Context, version int) (kube.List, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := fmt.Sprint("list ", version)
	switch version {
	case kube.AnyAge:
		name = "list any"
	case kube.Newest:
		name = "list newest"
	}
	s.note("%s", name)
	if len(s.lists) == 0 {
		return kube.List{Objects: []*kube.Object{{Name: "web-1", Version: 5}}, Version: max(version, 10)}, ctx.Err()
	}
	a := s.lists[0]
	s.lists = s.lists[1:]
	return a.list, a.err
}

// Watch implements kube.Server.
func (s *server) Watch(ctx context.Context, version int, timeout time.Duration) (kube.Watch, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note("watch %d", version)
	a := answer{}
	if len(s.watches) > 0 {
		a = s.watches[0]
		s.watches = s.watches[1:]
	}
	if a.err != nil {
		return nil, a.err
	}
	s.open++
	return &stream{ctx: ctx, s: s, frames: a.frames, until: time.Now().Add(timeout), silent: a.silent}, nil
}

type stream struct {
	ctx    context.Context
	s      *server
	frames []frame
	until  time.Time
	silent bool
	closed bool
}

func (w *stream) Next() (kube.Event, error) {
	wait, f := time.Until(w.until), frame{err: io.EOF}
	if len(w.frames) > 0 {
		f, w.frames = w.frames[0], w.frames[1:]
		wait = f.after
	} else if w.silent {
		<-w.ctx.Done()
		return kube.Event{}, w.ctx.Err()
	}
	select {
	case <-time.After(wait):
		return f.event, f.err
	case <-w.ctx.Done():
		return kube.Event{}, w.ctx.Err()
	}
}

func (w *stream) Close() {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	if !w.closed {
		w.closed = true
		w.s.open--
	}
}

// Replace and Apply implement kube.Cache.
func (s *server) Replace(all kube.List) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = append(s.told, fmt.Sprint("list of ", all.Version))
}

func (s *server) Apply(e kube.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = append(s.told, fmt.Sprintf("%s %s %d", e.Type, e.Object.Name, e.Object.Version))
}

// options returns the options of the tests: pauses of 1 to 8 seconds, and watches of a minute.
func options() Options {
	return Options{
		Min: time.Second, Max: 8 * time.Second, Timeout: time.Minute, Grace: 10 * time.Second,
		Rand: func() float64 { return 0 },
	}
}

// run runs a reflector for a time, and checks that it stops.
func (s *server) run(t *testing.T, d time.Duration, o Options) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s.began = time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{}) // closed when Run has returned
		go func() { defer close(done); New(s, s, o).Run(ctx) }()
		time.Sleep(d)
		cancel()
		synctest.Wait()
		select {
		case <-done:
		default:
			t.Errorf("The context was cancelled after %v, and Run has not returned. Its last request was %q. What "+
				"does it wait for?", d, s.log[len(s.log)-1])
			time.Sleep(time.Hour) // It may end later.
		}
		synctest.Wait()
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.open > 0 {
			t.Errorf("Run has returned, and %d watches are still open. Close each, whatever ended it.", s.open)
		}
	})
	if t.Failed() {
		t.FailNow()
	}
}

// asked compares the requests. A request may come a moment later than expected.
func (s *server) asked(t *testing.T, why string, want ...string) {
	t.Helper()
	got := s.log[:min(len(s.log), len(want))]
	for i := range want {
		if i >= len(got) || got[i] != want[i] {
			t.Fatalf("The requests were:\n  %s\nThey should be:\n  %s\n%s", strings.Join(got, "\n  "),
				strings.Join(want, "\n  "), why)
		}
	}
}
