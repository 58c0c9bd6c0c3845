package opentelemetry

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/flyball-dev/flyball/inspect"
	steps "github.com/flyball-dev/flyball/internal/trace"
	"github.com/flyball-dev/flyball/internal/workctx"
)

// name is the instrumentation scope of the spans.
const name = "github.com/flyball-dev/flyball/interop/opentelemetry"

// Options bound what an [Exporter] keeps. The zero value means the defaults.
type Options struct {
	// Buffer is how many steps may be heard of and not have settled, and as many may have settled; zero means 8,192.
	Buffer int
	// Recent is how many changes and writes later spans can refer to; zero means 16,384.
	Recent int
	// Settle is how long a step waits, so that the answer of a write comes before the change that it caused; zero
	// means 100 ms.
	Settle time.Duration
}

// Exporter makes spans of what an Inspector records. It is a manager's Runnable, and runs whoever leads.
//
// Concurrency: all methods may be called from any goroutine; Run once.
type Exporter struct {
	inspector *inspect.Inspector
	settle    time.Duration
	// buffer holds steps that have not become spans. The goroutines of the pipeline send and never wait; nobody closes
	// it.
	buffer  chan told
	dropped atomic.Uint64
	ran     atomic.Bool
	// stop ends what fills the buffer.
	stop  func()
	spans *spans
}

// told is a step as it was heard of.
type told struct {
	of   steps.Subject
	step steps.Step
	at   time.Time
	// order is the number of the step, which a write has from before it was sent; of a reconcile, that of its end.
	order uint64
}

// New returns an Exporter of what the inspector records from now on. Until Run is called, steps wait in the buffer.
func New(i *inspect.Inspector, p trace.TracerProvider, o Options) *Exporter {
	e := &Exporter{
		inspector: i, settle: cmp.Or(o.Settle, 100*time.Millisecond), buffer: make(chan told, cmp.Or(o.Buffer, 8192)),
		spans: newSpans(p.Tracer(name), i.Recorder(), cmp.Or(o.Recent, 16384)),
	}
	e.stop = i.Recorder().Listen(e.hear)
	return e
}

// Dropped returns how many steps have made no span because the buffer was full.
func (e *Exporter) Dropped() uint64 { return e.dropped.Load() }

// NeedLeaderElection reports that an Exporter runs in every process.
func (e *Exporter) NeedLeaderElection() bool { return false }

// Run makes spans until ctx is done and the reconciles that were running then have ended. The manager's deadline for
// work in flight ends it, too. It does not shut the provider down: its owner does, after Run has returned.
//
// Errors: when it is called again.
func (e *Exporter) Run(ctx context.Context) error {
	if e.ran.Swap(true) {
		return errors.New("opentelemetry: the exporter was already run, and can run only once")
	}
	work, release := workctx.From(ctx, e.settle)
	defer release()
	recorder := e.inspector.Recorder()
	defer e.spans.endAll()
	waiting := newWaiting(e.settle)
	defer waiting.timer.Stop()
	stopped := ctx.Done()
	for stopped != nil || recorder.Stats().Running > 0 && work.Err() == nil {
		heard := e.buffer
		if len(waiting.steps) >= cap(e.buffer) {
			heard = nil
		}
		select {
		case t := <-heard:
			waiting.add(t)
		case <-waiting.timer.C:
			waiting.each(time.Now(), e.spans.add)
		case <-stopped:
			stopped = nil
		case <-work.Done():
			stopped = nil
		}
	}
	e.stop()
	for len(e.buffer) > 0 {
		waiting.add(<-e.buffer)
	}
	waiting.each(time.Time{}, e.spans.add)
	return nil
}

// hear is called in the goroutine of the step.
func (e *Exporter) hear(of steps.Subject, s *steps.Step) {
	if s.Initial || s.Kind == steps.Handled {
		return
	}
	t := told{of, *s, time.Now(), s.Number}
	if s.Kind == steps.Ran {
		t.order = e.inspector.Recorder().Stats().Steps
	}
	select {
	case e.buffer <- t:
	default:
		e.dropped.Add(1)
	}
}

// waiting holds steps back until they have settled, in their order.
type waiting struct {
	settle time.Duration
	steps  []told
	timer  *time.Timer
}

func newWaiting(settle time.Duration) *waiting {
	w := &waiting{settle: settle, timer: time.NewTimer(settle)}
	w.timer.Stop()
	return w
}

func (w *waiting) add(t told) {
	n := len(w.steps)
	for n > 0 && w.steps[n-1].order > t.order {
		n--
	}
	if w.steps = slices.Insert(w.steps, n, t); len(w.steps) == 1 {
		w.timer.Reset(w.settle)
	}
}

// each calls f for the steps that have settled at now, and takes them away; the zero time means all.
func (w *waiting) each(now time.Time, f func(*told)) {
	n := 0
	for ; n < len(w.steps) && (now.IsZero() || now.Sub(w.steps[n].at) >= w.settle); n++ {
		f(&w.steps[n])
	}
	w.steps = append(w.steps[:0], w.steps[n:]...)
	clear(w.steps[len(w.steps):cap(w.steps)])
	if len(w.steps) > 0 {
		w.timer.Reset(time.Until(w.steps[0].at.Add(w.settle)))
	}
}
