package workqueue

import "time"

// entry is everything the queue knows about one key. Each key has at most one.
type entry[K comparable] struct {
	key K

	// dirty: the key has to be worked on, as soon as possible.
	//
	// Invariant: the entry is in Queue.ready, once, exactly if it is dirty and not processing. So a key that is added
	// again while it is worked on waits for Done, which moves it to ready: once, however often it was added.
	dirty bool

	// place is the entry's index in Queue.processing, -1 if it is not there.
	place int32

	// delays are the places of the key's pending delays in Queue.delayed, by kind; -1 if there is none.
	//
	// Invariant: dirty implies delays[ownDelay] == -1. The loop's own delay ends where a run is certain anyway.
	delays [delayKinds]int32

	// attempt counts the AddRateLimited calls since the last Forget.
	attempt int32

	// wanted is when the key became dirty, on the queue's clock; zero if the queue keeps no time.
	wanted time.Duration

	// priority is the highest the next run was asked for with. Meaningless while the entry is idle but for processing.
	priority int
	// causes are the reasons for the next run; nil if there are none.
	causes *causes
}

// processing reports whether the key was handed out and is not done.
func (e *entry[K]) processing() bool { return e.place >= 0 }

// pending reports whether a run of the key is to come.
func (e *entry[K]) pending() bool {
	return e.dirty || e.delays[explicitDelay] >= 0 || e.delays[ownDelay] >= 0
}

// raise asks for a priority for the key's next run: the first request sets it, later ones can only raise it.
func (e *entry[K]) raise(priority int) {
	if !e.pending() || priority > e.priority {
		e.priority = priority
	}
}
