// Package reflector is task 03a: a reflector in 150 lines.
//
// It follows a server, whatever the server does, until its context is done. File server.go has the server and the
// cache. The position is the version up to which the cache has everything. What comes next depends on how a list or a
// watch ended:
//
//	a watch    io.EOF                    watch again, from the position
//	           *BusyError                pause, at least for RetryAfter; watch again
//	           ErrGone                   list, not older than the position
//	           silent for too long       watch again
//	           any other                 pause; watch again
//	a list     nil                       watch from the version of the list
//	           ErrGone, ErrAhead         list the newest, unless that was the newest
//	           any other                 pause; list again
//
// The first pause is Options.Min, and each is twice the one before, up to Options.Max. To each is added its product
// with Options.Rand. The pauses begin with Min again after a watch that told something, or lasted for a second. A
// bookmark tells something, too.
//
// A watch that ends with io.EOF within a second and has told nothing counts as "any other": otherwise a server that
// hangs up at once would be asked in a loop. A watch is silent for too long if the server has not ended it
// Options.Grace after the timeout that it was asked for.
//
// Begin with a loop over states: to list or to watch. Write a method for each of the two, and one function that decides
// what follows. The first test needs only one list and one watch.
package reflector

import (
	"context"
	"time"
)

// Options say how long to wait.
type Options struct {
	// Min and Max are the shortest and the longest pause.
	Min, Max time.Duration
	// Timeout is how long the server is asked to keep a watch, and Grace how much later it is given up.
	Timeout, Grace time.Duration
	// Rand returns numbers in [0,1).
	Rand func() float64
}

// Reflector follows a server. Add the fields that you need.
type Reflector struct {
	server Server
	cache  Cache
	o      Options
}

// New returns a reflector. It starts nothing.
func New(server Server, cache Cache, o Options) *Reflector {
	return &Reflector{server: server, cache: cache, o: o}
}

// Run follows the server until ctx is done. Then it returns at once, and every watch is closed.
func (r *Reflector) Run(ctx context.Context) {
	panic("not written yet: Run")
}
