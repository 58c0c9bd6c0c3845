package informer

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/datadriven"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
)

// TestPipeline runs the scripts in testdata/pipeline: what the server does, and what the informer makes of it. A script is
// also documentation: read them.
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
	stop     context.CancelFunc
	done     chan struct{}
	handlers map[string]*recorder
	// transformErr makes the transform fail on the object of that name.
	transformErr string
}

func newPipeline(stream bool) *pipeline {
	p := &pipeline{server: newServer(), handlers: map[string]*recorder{}, done: make(chan struct{})}
	p.informer = NewSharedInformer[object](p.server, Options[object]{
		Resource: "pods", PageSize: 2, StreamLists: stream,
		Backoff: Backoff{Min: time.Second, Max: 30 * time.Second, Rand: func() float64 { return 0 }},
		Indexes: map[string]IndexFunc[object]{"initial": func(o object) ([]string, error) { return []string{o.Name[:1]}, nil }},
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

// recorder is a handler that writes down what it is told. It can be held up.
type recorder struct {
	mu    sync.Mutex
	lines []string
	reg   *Registration
	gate  chan struct{} // Closed when the handler may go on; nil while it is not held. Made and closed by the script.
}

func (r *recorder) note(format string, args ...any) {
	r.mu.Lock()
	gate := r.gate
	r.mu.Unlock()
	if gate != nil {
		<-gate
	}
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

// show names a state of an object: name, version, and which object of that name it is.
func show(o object) string { return fmt.Sprintf("%s@%s/%s", o.Name, o.ResourceVersion, o.UID) }

// command executes one command of a script and returns the trace of what it led to.
func (p *pipeline) command(t *testing.T, d *datadriven.TestData) string {
	arg := func(i int) string {
		if i < len(d.CmdArgs) {
			return d.CmdArgs[i].Key
		}
		return ""
	}
	switch d.Cmd {
	case "run":
		ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
		p.stop = cancel
		go func() {
			defer close(p.done)
			_ = p.informer.Run(ctx)
		}()
	case "stop":
		p.close()
	case "apply":
		for _, a := range d.CmdArgs {
			p.server.put(a.Key)
		}
	case "delete":
		for _, a := range d.CmdArgs {
			p.server.remove(a.Key)
		}
	case "bookmark":
		rv, _ := strconv.Atoi(arg(0))
		p.server.bookmark(rv)
	case "cut-watch":
		p.server.cut(scriptedError(arg(0)))
	case "elsewhere":
		p.server.rv, _ = strconv.Atoi(arg(0))
	case "endless":
		p.server.endless = true
	case "compact":
		p.server.compact()
	case "restore":
		rv, _ := strconv.Atoi(arg(0))
		p.server.restore(rv)
	case "send": // Raw: an event out of nowhere, such as real servers have sent.
		kind := EventType(arg(0))
		obj := &metav1.PartialObjectMetadata{}
		obj.Namespace, obj.Name, obj.ResourceVersion = "default", arg(1), arg(2)
		if old := p.server.objects[Key(obj)]; old != nil {
			obj.UID = old.UID
		}
		p.server.inject(Event[object]{Type: kind, Object: obj, ResourceVersion: arg(2)})
	case "fail-list":
		for _, a := range d.CmdArgs {
			p.server.fail([]error{scriptedError(a.Key)}, nil)
		}
	case "fail-watch":
		for _, a := range d.CmdArgs {
			p.server.fail(nil, []error{scriptedError(a.Key)})
		}
	case "fail-transform":
		p.transformErr = arg(0)
	case "add-handler":
		r := &recorder{}
		o := HandlerOptions{Name: arg(0)}
		for _, a := range d.CmdArgs[1:] {
			switch a.Key {
			case "resync":
				o.Resync, _ = time.ParseDuration(a.Vals[0])
			case "max-lag":
				o.MaxLag, _ = strconv.Atoi(a.Vals[0])
			}
		}
		var err error
		if r.reg, err = p.informer.AddHandler(r.handler(), o); err != nil {
			return "error: " + err.Error() + "\n"
		}
		p.handlers[arg(0)] = r
	case "remove-handler":
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := p.informer.RemoveHandler(ctx, p.handlers[arg(0)].reg); err != nil {
			return "error: " + err.Error() + "\n"
		}
	case "hold":
		p.handlers[arg(0)].gate = make(chan struct{})
	case "release":
		r := p.handlers[arg(0)]
		close(r.gate)
		r.mu.Lock()
		r.gate = nil
		r.mu.Unlock()
	case "advance":
		dur, err := time.ParseDuration(arg(0))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(dur)
	case "dump":
		synctest.Wait()
		return p.dump(arg(0))
	default:
		t.Fatalf("unknown command %q", d.Cmd)
	}
	synctest.Wait()
	return p.trace()
}

// trace tells what the server was asked and what the handlers were told since the last trace.
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

func (p *pipeline) dump(what string) string {
	var b strings.Builder
	switch what {
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
	case "stats":
		s := p.informer.Stats()
		fmt.Fprintf(&b, "lists %d (again %d, rebuilding %d), watches %d, events %d, bookmarks %d\nduplicates %d, outdated %d, errors %d\n",
			s.Lists, s.Relists, s.Rebuilds, s.Watches, s.Events, s.Bookmarks, s.Duplicates, s.Outdated, s.Errors)
	}
	return b.String()
}

// scriptedError makes the error that a script names.
func scriptedError(name string) error {
	pods := schema.GroupResource{Resource: "pods"}
	switch name {
	case "ok":
		return nil
	case "eof":
		return errClosed
	case "422":
		return apierrors.NewInvalid(schema.GroupKind{Kind: "ListOptions"}, "", nil)
	case "410":
		return errExpired
	case "429":
		return apierrors.NewTooManyRequests("slow down", 7)
	case "500":
		return apierrors.NewInternalError(fmt.Errorf("etcd is not there"))
	case "401":
		return apierrors.NewUnauthorized("the token has expired")
	case "403":
		return apierrors.NewForbidden(pods, "", fmt.Errorf(`User "x" cannot list resource "pods" in API group "" at the cluster scope`))
	case "too-large":
		return errTooLarge()
	case "decode":
		return &DecodeError{What: "watch event", Err: fmt.Errorf("garbage")}
	default:
		return fmt.Errorf("connection %s", name)
	}
}
