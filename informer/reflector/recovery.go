package reflector

import (
	"context"
	"slices"
	"time"

	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/informer/internal/connection"
	"github.com/flyball-dev/flyball/informer/internal/wording"
)

// recoveries is the table of what follows a failure, by the state that failed. The first row that applies counts.
// TestRecoveryTable copies the table into docs/informer-cases.md.
var recoveries = map[kind][]recovery{
	listing: {
		on(failures{connection.Expired}, laterPage, listing, newest|unpaged, "one answer needs no history"),
		on(failures{connection.Expired, connection.Ahead}, older, listing, newest,
			"the newest list does not depend on a version"),
		on(failures{connection.Ahead}, stale, listing, newest|rebuild,
			"the history went back; the next list has what this process wrote before it noticed"),
		on(failures{connection.Refused}, always, listing, pause|report|streamAgain,
			"so it was not the streaming that was refused"),
		on(others, always, listing, pause|report, "there is nothing else to ask for"),
	},
	streaming: {
		on(failures{connection.Ahead}, stale, listing, newest|note, "a replica that lags has answered"),
		on(failures{connection.Expired, connection.Ahead}, older, streaming, newest,
			"the newest list does not depend on a version"),
		on(failures{connection.Refused, connection.Endless}, always, listing, dontStream|note,
			"either streaming is refused or everything is: a list tells which"),
		on(failures{connection.History}, always, streaming, newest|rebuild,
			"what arrived so far belongs to the last history"),
		on(failures{connection.Closed}, always, listing, note, "a list may get further"),
		on(others, wasOpen, listing, note, "a list may get further"),
		on(others, always, streaming, pause|report, "there is nothing else to ask for"),
	},
	verifying: {
		on(failures{connection.Ahead}, stale, relisting, newest|rebuild, "the history went back"),
		on(failures{connection.Refused, connection.Malformed}, always, watching, pause|report|lost,
			"a client that may not list may still watch"),
		on(others, always, verifying, pause|report|lost, "it is not known yet which server will answer"),
	},
	watching: {
		on(failures{connection.Closed}, always, watching, 0, "watches end like this"),
		on(failures{connection.History}, always, watching, 0, "the interruption leads to a list first"),
		on(failures{connection.Early}, always, verifying, lost, "the server may be going away"),
		on(failures{connection.Silent}, always, verifying, report|lost,
			"it took minutes to notice: there is nothing to wait for"),
		on(failures{connection.Broken, connection.Ahead, connection.Past}, always, verifying, pause|report|lost,
			"it may be another server now"),
		on(failures{connection.Expired}, progress, relisting, note|lost, "only a list shows what was missed"),
		on(failures{connection.Expired}, always, relisting, pause|note|lost,
			"a server that compacts too fast would be listed in a loop"),
		on(failures{connection.ServerError}, third, relisting, pause|report|lost,
			"when watching is impossible, listing now and then is better than nothing"),
		on(failures{connection.ServerError}, gateway, verifying, pause|report|lost,
			"the gateway may have another server behind it now"),
		on(failures{connection.ServerError, connection.Busy}, always, watching, pause|report|lost,
			"the position is still valid, and a list would only add to the load"),
		on(failures{connection.Refused, connection.Unverifiable, connection.Endless, connection.Malformed}, always,
			relisting, pause|report|lost, "only a list can help"),
	},
}

// recovery is a row of the table.
type recovery struct {
	on   failures
	when condition
	// next is the state that follows, and then has the actions and settings that come with it.
	next kind
	then effect
	why  string
}

func on(what failures, when condition, next kind, then effect, why string) recovery {
	return recovery{what, when, next, then, why}
}

type failures []connection.Failure

// others matches every failure that no row above it has.
var others failures

// condition must be true, besides the failure, for a row to apply.
type condition string

const (
	always condition = ""
	// About the request:
	laterPage condition = "a later page of a paged list"
	older     condition = "a list older than the newest was allowed"
	wasOpen   condition = "the stream was open"
	// About the answer:
	stale   condition = "the answer is older than the position"
	gateway condition = "a gateway may have answered"
	// About the watches so far:
	progress condition = "something was received since the last list"
	third    condition = "every third one in a row"
)

// facts has the conditions that are true.
type facts map[condition]bool

// effect is a set of actions and settings that may come with the next state.
type effect int

const (
	// newest: the next list asks for the newest state rather than for any state that is new enough.
	newest effect = 1 << iota
	// unpaged: the next list asks for everything at once, because a continue token expired.
	unpaged
	// rebuild: the next list replaces the cache even where its versions are earlier.
	rebuild
	// dontStream: lists are not streamed from now on. streamAgain undoes that.
	dontStream
	streamAgain
	// pause: the next state begins with a pause, as long as Backoff says, or longer if the server asks for it.
	pause
	// report: the failure goes to Health, the log and OnError. note: it goes to the log only, at V(2).
	report
	note
	// lost: another server may answer next, so its identity is checked; see [connection.Server.Verify].
	lost
)

func (e effect) has(one effect) bool { return e&one != 0 }

// lookup returns the row that applies. TestRecoveryTable checks that there is one for every failure that a state can
// meet.
func lookup(in kind, f connection.Failure, are facts) *recovery {
	for i, row := range recoveries[in] {
		if (row.on == nil || slices.Contains(row.on, f)) && (row.when == always || are[row.when]) {
			return &recoveries[in][i]
		}
	}
	return nil
}

// recoverFrom applies the row of the table for a failure in s, and returns the next state.
func (r *Reflector[T]) recoverFrom(ctx context.Context, s state, end ending, are facts) state {
	if ctx.Err() != nil {
		return s
	}
	row := lookup(s.kind, end.failure, are)
	if row.then.has(lost) {
		r.status.Server.Lost()
	}
	r.report(ctx, s.kind, row.then, end.err)
	r.noStreaming = r.noStreaming && !row.then.has(streamAgain) || row.then.has(dontStream)
	next := state{kind: row.next, list: s.list | row.then&(newest|unpaged|rebuild), because: end.failure}
	if row.then.has(pause) {
		next.pause = max(connection.RetryAfter(end.err), r.delays.take(time.Now()))
	}
	return next
}

// report reports a failure as the table demands.
func (r *Reflector[T]) report(ctx context.Context, in kind, as effect, err error) {
	log := klog.FromContext(ctx).V(2)
	switch {
	case as.has(report) && in == watching:
		r.status.Failed(ctx, "watch", err)
	case as.has(report):
		r.status.Failed(ctx, "list", err)
	case as.has(dontStream):
		log.Info("Server does not support streaming lists", "reason", wording.Reason(err))
	case as.has(note) && in == watching:
		log.Info("Watch expired", "resourceVersion", r.position, "reason", err.Error())
	case as.has(note):
		log.Info("Streaming list ended early", "reason", wording.Reason(err))
	}
}
