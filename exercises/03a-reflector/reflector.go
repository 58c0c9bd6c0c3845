// Package reflector is task 03a: a reflector in 150 lines.
//
// A reflector keeps a cache equal to a server, whatever the server does, until its context is done. Package kube has
// the interfaces Server and Cache. The position is the version up to which the cache has every change. What the
// reflector does next depends on how a list or a watch has ended:
//
//	a watch    io.EOF                    watch again, from the position
//	           ErrGone                   list, not older than the position
//	           silent for too long       watch again
//	           any other                 pause; watch again
//	a list     nil                       watch from the version of the list
//	           ErrGone, ErrAhead         list the newest, if this list asked for another version
//	           any other                 pause; ask for the same list again
//
// The first list may be of any age. The first pause is Options.Min, and each further pause is twice as long, up to
// Options.Max. Each is extended by a random part, the pause times Options.Rand(). After a *BusyError it lasts at least
// for RetryAfter. After a watch that delivered an event, or lasted for a second, the pauses begin with Min again. A
// bookmark is an event, too.
//
// A watch that ends with io.EOF within a second, without any event, counts as "any other". Otherwise a server that ends
// each watch at once would be asked in a tight loop. A watch is silent for too long if the server has not ended it when
// Options.Grace has passed after the timeout of the request.
//
// Begin with a loop over states: list or watch. Write a method for each of the two, and one function that decides which
// state comes next. The first test needs only one list and one watch.
package reflector

import (
	"context"
	"time"

	"github.com/flyball-dev/flyball/exercises/kube"
)

// Options has the durations of a reflector.
type Options struct {
	// Min and Max are the shortest and the longest pause.
	Min, Max time.Duration
	// Timeout is how long the server is asked to keep a watch open. Grace is how long after that the reflector ends it.
	Timeout, Grace time.Duration
	// Rand returns random numbers in [0,1).
	Rand func() float64
}

// Reflector keeps a cache equal to a server. Add the fields that you need.
type Reflector struct {
	server kube.Server
	cache  kube.Cache
	o      Options
}

// New returns a reflector. It starts nothing.
func New(server kube.Server, cache kube.Cache, o Options) *Reflector {
	return &Reflector{server: server, cache: cache, o: o}
}

// Run keeps the cache equal to the server until ctx is done. It then closes its watch and returns at once.
func (r *Reflector) Run(ctx context.Context) {
	panic("not written yet: Run")
}
