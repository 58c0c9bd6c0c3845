// Package opentelemetry tells what an Inspector records as OpenTelemetry spans: one trace for each change, from the
// event of the watch through the reconciles to their writes.
//
//	inspector := inspect.New(inspect.Options{})
//	exporter := opentelemetry.New(inspector, provider, opentelemetry.Options{})
//	mgr, err := ctrl.NewManager(config, ctrl.Options{Inspect: inspector})
//	err = mgr.Add(exporter)
//
// It is a module of its own, so that only programs that use it depend on OpenTelemetry.
//
// # Spans
//
//	event pods                         a watch brought a state of an object
//	└─ change pods                     a cache took it over
//	   └─ reconcile web                the first of the causes of the reconcile is that change
//	      ├─ read pods                 a read that was held back for an own write
//	      └─ update pods/status        a write
//	         └─ event pods             the watch brought the state that the write made
//
// A queue joins changes: one reconcile may have many causes. The first is the parent of its span, and the span links to
// the others. A reconcile without a known cause begins a trace. Log lines are events of the span. A failed reconcile or
// write has the status Error.
//
// # Limits
//
// The pipeline never waits. Steps go into a buffer, and what does not fit is counted by [Exporter.Dropped]. Spans are
// made some time after their steps, with the times of the steps: an event of the watch may overtake the answer of the
// write that caused it. Changes of the first list make no spans, since a trace for each object of a cluster tells
// nothing.
//
// # Reading order
//
// exporter.go, the buffer and its life; spans.go, which step becomes which span, and what later spans refer to.
package opentelemetry
