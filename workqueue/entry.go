package workqueue

// entry is everything the queue knows about one key. Each key has at most one.
type entry[K comparable] struct {
	key K

	// run is what is known of the key's next run. Nil where nothing is: the run was asked for without cause and
	// priority, in a queue that keeps neither time nor order.
	//
	// Invariant: nil if the next run has not been asked for.
	run *Ready[K]

	// place is the index of the key's run in Queue.processing; none if nobody works on the key.
	place int32

	// delays are the places of the key's pending delays in Queue.delayed, by kind; none where there is none.
	//
	// Invariant: dirty implies delays[ownDelay] == none. The loop's own delay ends where a run is certain anyway.
	delays [delayKinds]int32

	// attempt counts the AddRateLimited calls since the last Forget, up to what it can hold.
	attempt uint16

	// dirty: the key has to be worked on, as soon as possible.
	//
	// Invariant: the key is in Queue.ready, once, exactly if it is dirty and not processing. So a key that is added
	// again while it is worked on waits for Done, which moves it to ready: once, however often it was added.
	dirty bool

	// retired: the entry's id is in table.retired.
	retired bool
}

// none is a place in no list.
const none = -1

// processing reports whether the key was handed out and is not done.
func (e *entry[K]) processing() bool { return e.place != none }

// wanted reports whether a run of the key is to come.
func (e *entry[K]) wanted() bool {
	return e.dirty || e.delays[explicitDelay] != none || e.delays[ownDelay] != none
}

// idle reports whether the entry holds nothing but its key.
func (e *entry[K]) idle() bool { return !e.processing() && !e.wanted() }
