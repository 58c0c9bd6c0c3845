package opentelemetry

import "go.opentelemetry.io/otel/trace"

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
