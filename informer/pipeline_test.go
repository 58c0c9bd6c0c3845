package informer

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/datadriven"
)

// TestPipeline runs the scripts in testdata/pipeline. They show what the server does, and how the informer reacts. They
// are also documentation: read them.
func TestPipeline(t *testing.T) {
	datadriven.Walk(t, "testdata/pipeline", func(t *testing.T, path string) {
		synctest.Test(t, func(t *testing.T) {
			p := newPipeline(strings.Contains(path, "stream"))
			datadriven.RunTest(t, path, p.command)
			p.close()
		})
	})
}

// pipeline is the state of one script.
type pipeline struct {
	server   *server
	informer *SharedInformer[object]
	stop     func()
	done     chan struct{}
	handlers map[string]*recorder
	// transformErr is the name of the object that the transform fails for.
	transformErr string
}

func newPipeline(stream bool) *pipeline {
	p := &pipeline{server: newServer(), handlers: map[string]*recorder{}, done: make(chan struct{})}
	p.informer = NewSharedInformer[object](p.server, Options[object]{
		Resource: "pods", PageSize: 2, StreamLists: stream,
		Backoff: Backoff{Min: time.Second, Max: 30 * time.Second, Rand: func() float64 { return 0 }},
		Indexes: map[string]IndexFunc[object]{
			"initial": func(o object) ([]string, error) { return []string{o.Name[:1]}, nil },
		},
		Transform: func(o object) (object, error) {
			if o.Name == p.transformErr {
				return nil, fmt.Errorf("cannot transform")
			}
			return o, nil
		},
	})
	p.stop = func() { close(p.done) } // Until it runs.
	return p
}

func (p *pipeline) close() {
	p.stop()
	<-p.done
	p.stop = func() {}
}

// brake blocks every caller of its pass method between hold and release.
type brake struct {
	holding sync.Mutex    // Held for a moment only.
	gate    chan struct{} // Closed by release; nil while there is no hold.
}

func (b *brake) hold() {
	b.holding.Lock()
	defer b.holding.Unlock()
	if b.gate == nil {
		b.gate = make(chan struct{})
	}
}

func (b *brake) release() {
	b.holding.Lock()
	defer b.holding.Unlock()
	if b.gate != nil {
		close(b.gate)
		b.gate = nil
	}
}

func (b *brake) pass() {
	b.holding.Lock()
	gate := b.gate
	b.holding.Unlock()
	if gate != nil {
		<-gate
	}
}

// recorder is a handler that records its calls. It can be blocked.
type recorder struct {
	brake
	mu    sync.Mutex
	lines []string
	reg   Registration
}

func (r *recorder) note(format string, args ...any) {
	r.pass()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, fmt.Sprintf(format, args...))
}

func (r *recorder) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.lines
	r.lines = nil
	return l
}

func (r *recorder) handler() Handler[object] {
	return Handler[object]{
		OnAdd: func(o object, initial bool) {
			if initial {
				r.note("add %s (initial)", show(o))
			} else {
				r.note("add %s", show(o))
			}
		},
		OnUpdate: func(old, o object) { r.note("update %s -> %s", show(old), show(o)) },
		OnDelete: func(d Deleted[object]) {
			if d.Stale {
				r.note("delete %s (last known state)", show(d.Object))
			} else {
				r.note("delete %s", show(d.Object))
			}
		},
	}
}

// show returns name and version of a state, and which object of that name it is.
func show(o object) string { return fmt.Sprintf("%s@%s/%s", o.Name, o.ResourceVersion, o.UID) }

// trace returns the requests to the server and the calls of the handlers since the last trace.
func (p *pipeline) trace() string {
	var b strings.Builder
	for _, r := range p.server.asked() {
		fmt.Fprintf(&b, "server  %s\n", r)
	}
	names := make([]string, 0, len(p.handlers))
	for name := range p.handlers {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		for _, line := range p.handlers[name].take() {
			fmt.Fprintf(&b, "%-7s %s\n", name, line)
		}
	}
	if b.Len() == 0 {
		return "(nothing)\n"
	}
	return b.String()
}

func (p *pipeline) dump(_ *testing.T, args []string) string {
	synctest.Wait()
	var b strings.Builder
	switch args[0] {
	case "store":
		fmt.Fprintf(&b, "watermark %q, synced %v\n", p.informer.ResourceVersion(), p.informer.HasSynced())
		objs := p.informer.List("", nil)
		slices.SortFunc(objs, func(a, b object) int { return strings.Compare(Key(a), Key(b)) })
		for _, o := range objs {
			fmt.Fprintf(&b, "  %s\n", show(o))
		}
	case "handlers":
		for _, s := range p.informer.Stats().Handlers {
			fmt.Fprintf(&b, "%-7s delivered %d, pending %d, merged %d\n", s.Name, s.Delivered, s.Pending, s.Merged)
		}
	case "health":
		if h := p.informer.Health(); h.Err != nil {
			fmt.Fprintf(&b, "%v\n", h.Err)
		} else {
			b.WriteString("ok\n")
		}
		if h := p.informer.Health(); h.Unreadable > 0 {
			fmt.Fprintf(&b, "unreadable: %d, %v\n", h.Unreadable, h.UnreadableErr)
		}
	case "stats":
		s := p.informer.Stats()
		fmt.Fprintf(&b,
			"lists %d (again %d, rebuilding %d), watches %d, events %d, bookmarks %d\nduplicates %d, outdated %d, "+
				"errors %d\n",
			s.Lists, s.Relists, s.Rebuilds, s.Watches, s.Events, s.Bookmarks, s.Duplicates, s.Outdated, s.Errors)
	}
	return b.String()
}
