// Package events records core/v1 Events about objects: the lines that "kubectl describe" prints under an object.
//
// A [Broadcaster] owns one bounded queue and, while its Run is active, one goroutine that sends. Every component asks
// it for a [Recorder] of its own:
//
//	Recorder.Eventf ──▶ queue (bounded) ──▶ correlator ──▶ create or patch ──▶ API server
//	  any goroutine       never blocks       counts repeats,   retried while the server is away,
//	                                         folds similar     sent in the order of recording
//	                                         ones, drops spam
//
// # What becomes of an event
//
// Recording never blocks and never fails. What happened to an event is told by [Stats], where every recorded event is
// counted in exactly one place: still queued, sent, filtered as spam, refused by the server, given up after retries,
// or dropped because the queue was full or the broadcaster had stopped. Nothing is lost without being counted.
//
// # Stopping
//
// When the context of [Broadcaster.Run] ends, the intake closes and what is queued is sent with a context that is still
// alive, for at most Options.DrainTimeout. What could not be sent by then is named in the error that Run
// returns. Stop the code that records first and the broadcaster after it.
//
// # Correlation
//
// A repeat of the same event increases the count of the first one by a patch. Ten or more different messages under one
// reason within ten minutes become one event whose message begins with "(combined from similar events): ". A component
// may send 25 events of one type about one object, then one every five minutes.
//
// Source: client-go v0.37.2 tools/record/events_cache.go. The differences are listed at [Broadcaster].
package events
