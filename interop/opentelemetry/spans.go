package opentelemetry

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	steps "github.com/flyball-dev/flyball/internal/trace"
)

// spans makes spans of steps. One goroutine uses it.
type spans struct {
	tracer   trace.Tracer
	recorder *steps.Recorder
	// writes has the span of each state that a write made, events that of each state that a watch brought, and changes
	// that of each state that a cache took over.
	writes, events, changes recent
	// running are the spans of reconciles that have not ended. There are as many as workers, and those of a reconcile
	// whose end was dropped; the oldest gives way at mostRunning.
	running map[run]trace.Span
	order   []run
}

// run names a reconcile.
type run struct {
	key    steps.Subject
	number uint64
}

const mostRunning = 4096

func newSpans(t trace.Tracer, r *steps.Recorder, most int) *spans {
	return &spans{
		tracer: t, recorder: r, running: map[run]trace.Span{},
		writes: newRecent(most), events: newRecent(most), changes: newRecent(most),
	}
}

// add makes the span of a step.
func (s *spans) add(t *told) {
	switch t.step.Kind {
	case steps.Received:
		s.moment(t, "event", &s.events, &s.writes)
	case steps.Changed:
		s.moment(t, "change", &s.changes, &s.events, &s.writes)
	case steps.Ran:
		r := run{t.of, t.step.Run}
		span := s.span(r)
		span.SetAttributes(attribute.String("flyball.outcome", t.step.Outcome))
		if t.step.Next > 0 {
			span.SetAttributes(attribute.Float64("flyball.requeue_after", t.step.Next.Seconds()))
		}
		if t.step.Outcome != "stale" && t.step.Outcome != "cancelled" {
			fail(span, t.step.Err)
		}
		span.End(trace.WithTimestamp(t.step.Time.Add(t.step.Took)))
		delete(s.running, r)
	case steps.Wrote:
		s.wrote(t)
	case steps.Waited:
		_, span := s.tracer.Start(s.under(run{t.of, t.step.Run}), "read "+strings.TrimSpace(t.step.Text),
			trace.WithTimestamp(t.step.Time))
		fail(span, t.step.Err)
		span.End(trace.WithTimestamp(t.step.Time.Add(t.step.Took)))
	case steps.Logged:
		s.span(run{t.of, t.step.Run}).AddEvent("log", trace.WithTimestamp(t.step.Time),
			trace.WithAttributes(attribute.String("message", t.step.Text)))
	}
}

// moment makes the span of an event or a change, below that of the same state in the first of befores that has one.
func (s *spans) moment(t *told, what string, into *recent, befores ...*recent) {
	of := state{t.of.Resource, t.of.Key(), t.step.Version}
	ctx := context.Background()
	for _, before := range befores {
		if span, ok := before.spans[of]; ok {
			ctx = trace.ContextWithSpanContext(ctx, span)
			break
		}
	}
	_, span := s.tracer.Start(ctx, what+" "+t.of.Resource, trace.WithTimestamp(t.step.Time),
		trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(object(t.of, t.step.Version)...),
		trace.WithAttributes(attribute.String("flyball.event", t.step.Event)))
	fail(span, t.step.Err)
	span.End(trace.WithTimestamp(t.step.Time))
	into.add(of, span.SpanContext())
}

// span returns the span of a reconcile, and begins it if need be.
func (s *spans) span(r run) trace.Span {
	if span := s.running[r]; span != nil {
		return span
	}
	begin := s.begin(r)
	ctx, links := context.Background(), []trace.Link(nil)
	for n := range begin.Causes {
		change, ok := s.changes.spans[stateOf(&begin.Causes[n])]
		switch {
		case !ok:
		case !trace.SpanContextFromContext(ctx).IsValid():
			ctx = trace.ContextWithSpanContext(ctx, change)
		default:
			links = append(links, trace.Link{SpanContext: change})
		}
	}
	options := []trace.SpanStartOption{
		trace.WithLinks(links...),
		trace.WithAttributes(
			attribute.String("k8s.namespace.name", r.key.Namespace), attribute.String("flyball.key", r.key.Key()),
			attribute.String("flyball.controller", r.key.Controller), attribute.Int("flyball.attempt", begin.Attempt),
			attribute.Float64("flyball.queued", begin.Queued.Seconds()),
		),
	}
	if !begin.Time.IsZero() {
		options = append(options, trace.WithTimestamp(begin.Time))
	}
	_, span := s.tracer.Start(ctx, "reconcile "+r.key.Controller, options...)
	s.running[r] = span
	if s.order = append(s.order, r); len(s.order) > mostRunning {
		if old := s.running[s.order[0]]; old != nil {
			old.End()
			delete(s.running, s.order[0])
		}
		s.order = s.order[1:]
	}
	return span
}

// begin returns the step of a reconcile, as far as it is known. It may be forgotten.
func (s *spans) begin(r run) steps.Step {
	all, _ := s.recorder.Steps(r.key)
	for n := range all {
		if all[n].Kind == steps.Ran && all[n].Run == r.number {
			return all[n]
		}
	}
	return steps.Step{}
}

// under returns the context of a reconcile's span.
func (s *spans) under(r run) context.Context {
	return trace.ContextWithSpan(context.Background(), s.span(r))
}

// wrote makes the span of a write. Its step is that of the object; Other is the key.
func (s *spans) wrote(t *told) {
	ctx := context.Background()
	if t.step.Run != 0 {
		ctx = s.under(run{t.step.Other, t.step.Run})
	}
	what := t.step.Event + " " + t.of.Resource
	if t.step.Text != "" {
		what += "/" + t.step.Text
	}
	_, span := s.tracer.Start(ctx, what, trace.WithTimestamp(t.step.Time), trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(object(t.of, t.step.Version)...),
		trace.WithAttributes(attribute.String("flyball.status", t.step.Outcome)))
	fail(span, t.step.Err)
	if t.step.Err == nil && !strings.HasPrefix(t.step.Outcome, "2") {
		span.SetStatus(codes.Error, t.step.Outcome)
	}
	span.End(trace.WithTimestamp(t.step.Time.Add(t.step.Took)))
	if t.step.Version != "" {
		s.writes.add(state{t.of.Resource, t.of.Key(), t.step.Version}, span.SpanContext())
	}
}

// endAll ends the spans of reconciles whose end was not heard of.
func (s *spans) endAll() {
	for r, span := range s.running {
		span.SetStatus(codes.Error, "the reconcile had not ended when the process stopped")
		span.End()
		delete(s.running, r)
	}
}

func stateOf(c *steps.Cause) state { return state{c.Source, c.Object, c.ResourceVersion} }

func object(s steps.Subject, version string) []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.String("k8s.namespace.name", s.Namespace), attribute.String("flyball.resource", s.Resource),
		attribute.String("flyball.name", s.Name), attribute.String("flyball.resource_version", version),
	}
}

func fail(span trace.Span, err error) {
	if err != nil {
		span.RecordError(err)
		span.SetStatus(codes.Error, err.Error())
	}
}

// state names a state of an object.
type state struct{ resource, key, version string }

// recent maps the latest states to spans, up to a number.
type recent struct {
	spans map[state]trace.SpanContext
	// order is a ring of the keys of spans, oldest at next.
	order []state
	next  int
}

func newRecent(most int) recent {
	return recent{spans: make(map[state]trace.SpanContext, most), order: make([]state, most)}
}

func (r *recent) add(s state, c trace.SpanContext) {
	if _, ok := r.spans[s]; !ok {
		delete(r.spans, r.order[r.next])
		r.order[r.next] = s
		r.next = (r.next + 1) % len(r.order)
	}
	r.spans[s] = c
}
