// Package events records core/v1 Events about objects: the lines that "kubectl describe" prints under an object.
//
// A [Broadcaster] has one bounded queue and, during Run, one goroutine that sends. Every component gets a [Recorder] of
// its own from it:
//
//	Recorder.Eventf ──▶ queue (bounded) ──▶ correlator ──▶ create or patch ──▶ API server
//	  any goroutine       never blocks       counts repeats,   retried while the server is away,
//	                                         folds similar     sent in the order of recording
//	                                         ones, drops spam
//
// # What becomes of an event
//
// Recording never blocks and never fails. [Stats] counts every recorded event in exactly one place: still queued, sent,
// filtered as spam, refused by the server, given up after retries, or dropped because the queue was full or the
// broadcaster had stopped. No event is lost without being counted.
//
// # Stopping
//
// When the context of [Broadcaster.Run] ends, the queue closes, and Run sends the events in it for at most
// Options.DrainTimeout. The error that Run returns names the events that are left. Stop the code that records first,
// then the broadcaster.
//
// # Correlation
//
// A repetition of an event increases the count of the first one by a patch. Ten or more different messages with one
// reason within ten minutes become one event whose message begins with "(combined from similar events): ". A component
// may send 25 events of one type about one object, then one every five minutes.
//
// Source: client-go v0.37.2 tools/record/events_cache.go. [Broadcaster] lists the differences.
package events
