package reflector

import (
	"context"
	"slices"
	"time"

	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/informer/internal/connection"
)

// recoveries is the table of what follows a failure, by the state that it ended. The first row that applies counts.
// TestRecoveryTable writes the table into docs/informer-cases.md.
var recoveries = map[kind][]recovery{
	listing: {
		on(failures{connection.Expired}, laterPage, listing, newest|unpaged, "one answer needs no history"),
		on(failures{connection.Expired, connection.Ahead}, older, listing, newest,
			"the newest list does not depend on a version"),
		on(failures{connection.Ahead}, stale, listing, newest|rebuild,
			"the history went back; the next list has what this process wrote before all were told"),
		on(failures{connection.Refused}, always, listing, pause|report|streamAgain,
			"then it was not the streaming that was refused"),
		on(others, always, listing, pause|report, "there is nothing else to ask for"),
	},
	streaming: {
		on(failures{connection.Ahead}, stale, listing, newest|note, "a replica that lags has answered"),
		on(failures{connection.Expired, connection.Ahead}, older, streaming, newest,
			"the newest list does not depend on a version"),
		on(failures{connection.Refused, connection.Endless}, always, listing, dontStream|note,
			"it may be the streaming that is refused, or everything: a list tells"),
		on(failures{connection.History}, always, streaming, newest|rebuild, "what came so far is of the last history"),
		on(failures{connection.Closed}, always, listing, note, "a list may get further"),
		on(others, wasOpen, listing, note, "a list may get further"),
		on(others, always, streaming, pause|report, "there is nothing else to ask for"),
	},
	verifying: {
		on(failures{connection.Ahead}, stale, relisting, newest|rebuild, "the history went back"),
		on(failures{connection.Refused, connection.Malformed}, always, watching, pause|report|lost,
			"who may not list may still watch"),
		on(others, always, verifying, pause|report|lost, "nobody knows yet which server will answer"),
	},
	watching: {
		on(failures{connection.Closed}, always, watching, 0, "that is how watches end"),
		on(failures{connection.History}, always, watching, 0, "the interruption leads to a list before that"),
		on(failures{connection.Early}, always, verifying, lost, "the server may be going away"),
		on(failures{connection.Silent}, always, verifying, report|lost,
			"it took minutes to notice: there is nothing to wait for"),
		on(failures{connection.Broken, connection.Ahead, connection.Past}, always, verifying, pause|report|lost,
			"it may be another server now"),
		on(failures{connection.Expired}, progress, relisting, note|lost, "only a list tells what was missed"),
		on(failures{connection.Expired}, always, relisting, pause|note|lost,
			"a server that compacts too fast would be listed in a loop"),
		on(failures{connection.ServerError}, third, relisting, pause|report|lost,
			"when watching is impossible, listing now and then is better than nothing"),
		on(failures{connection.ServerError}, gateway, verifying, pause|report|lost,
			"the gateway may have another server behind it now"),
		on(failures{connection.ServerError, connection.Busy}, always, watching, pause|report|lost,
			"the position is still good, and a list is what such a server needs least"),
		on(failures{connection.Refused, connection.Unverifiable, connection.Endless, connection.Malformed}, always,
			relisting, pause|report|lost, "only a list can help"),
	},
}

// recovery is a row of the table.
type recovery struct {
	on   failures
	when condition
	// next is the state that follows, and then is what comes with it.
	next kind
	then effect
	why  string
}

func on(what failures, when condition, next kind, then effect, why string) recovery {
	return recovery{what, when, next, then, why}
}

type failures []connection.Failure

// others are the failures that the state meets and no row before has.
var others failures

// condition is what has to be true beside the failure.
type condition string

const (
	always condition = ""
	// Of the request:
	laterPage condition = "a later page of a paged list"
	older     condition = "a list older than the newest was allowed"
	wasOpen   condition = "the stream was open"
	// Of the answer:
	stale   condition = "the answer is older than the position"
	gateway condition = "a gateway may have answered"
	// Of the watches so far:
	progress condition = "something was learnt since the last list"
	third    condition = "every third one in a row"
)

// facts are the conditions that are true.
type facts map[condition]bool

// effect is a set of what may come with a state.
type effect int

const (
	// newest: the next list asks for the newest state, not for any that is new enough.
	newest effect = 1 << iota
	// unpaged: it asks for everything at once, because a continue token expired.
	unpaged
	// rebuild: it is believed over the cache whatever its versions are.
	rebuild
	// dontStream: lists are not streamed from now on. streamAgain: they may be.
	dontStream
	streamAgain
	// pause: the state begins with a pause of the length that Backoff says, or the server if it asked for more.
	pause
	// report: Health, the log and OnError tell of the failure. note: the log does, at V(2).
	report
	note
	// lost: another server may answer next, so it is asked who it is; see [connection.Server.Verify].
	lost
)

func (e effect) has(one effect) bool { return e&one != 0 }

// lookup returns the row that applies. There is one for every failure that the state can meet; see TestRecoveryTable.
func lookup(in kind, f connection.Failure, are facts) *recovery {
	for i, row := range recoveries[in] {
		if (row.on == nil || slices.Contains(row.on, f)) && (row.when == always || are[row.when]) {
			return &recoveries[in][i]
		}
	}
	return nil
}

// recoverFrom does what the table says about a failure in s, and returns what comes next.
func (r *Reflector[T]) recoverFrom(ctx context.Context, s state, f connection.Failure, err error, are facts) state {
	if ctx.Err() != nil {
		return s
	}
	row := lookup(s.kind, f, are)
	if row.then.has(lost) {
		r.status.Server.Lost()
	}
	r.tell(ctx, s.kind, row.then, err)
	r.unstreamed = r.unstreamed && !row.then.has(streamAgain) || row.then.has(dontStream)
	next := state{kind: row.next, asks: s.asks | row.then&(newest|unpaged|rebuild), because: f}
	if row.then.has(pause) {
		next.pause = max(connection.RetryAfter(err), r.delays.take(time.Now()))
	}
	return next
}

// tell reports a failure as the table says.
func (r *Reflector[T]) tell(ctx context.Context, in kind, as effect, err error) {
	log := klog.FromContext(ctx).V(2)
	switch {
	case as.has(report) && in == watching:
		r.status.Failed(ctx, "watch", err)
	case as.has(report):
		r.status.Failed(ctx, "list", err)
	case as.has(dontStream):
		log.Info("Server does not support streaming lists", "reason", connection.Reason(err))
	case as.has(note) && in == watching:
		log.Info("Watch expired", "resourceVersion", r.position, "reason", err.Error())
	case as.has(note):
		log.Info("Streaming list ended early", "reason", connection.Reason(err))
	}
}
