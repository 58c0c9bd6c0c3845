package deltafifo

import "github.com/flyball-dev/flyball/informer/objects"

// DeltaType is the kind of a [Delta].
type DeltaType int

// The types of deltas.
const (
	// Upsert is a new state of one object: an ADDED or MODIFIED event. Which of the two it was says nothing about
	// the cache, so it is not kept: the cache decides.
	Upsert DeltaType = iota
	// Delete is the last state of one object.
	Delete
	// Replace is everything there is: a complete list. What it does not hold is gone.
	Replace
	// Bookmark moves the watermark, and nothing else.
	Bookmark
	// Resync repeats the cache to those handlers whose resync is due.
	Resync
)

func (t DeltaType) String() string {
	switch t {
	case Upsert:
		return "Upsert"
	case Delete:
		return "Delete"
	case Replace:
		return "Replace"
	case Bookmark:
		return "Bookmark"
	case Resync:
		return "Resync"
	default:
		return "Unknown"
	}
}

// Delta is one thing learnt about the resource.
type Delta[T any] struct {
	Type DeltaType
	// Object is set for Upsert and Delete.
	Object T
	// Objects is set for Replace. The receiver owns the slice.
	Objects []T
	// Unreadable are objects in a state that could not be decoded. In a Replace they exist beside Objects; in an
	// Upsert or Delete the one element stands for Object. The cache keeps what it has of them while they exist.
	Unreadable []*objects.DecodeError
	// ResourceVersion is the position in the server's history after this delta; "" for Resync.
	ResourceVersion string
	// Scope numbers the reflector it came from; an indexer has a watermark for each. An informer of one reflector
	// uses 0.
	Scope int
	// Accept says what the cache does with states that are not later than its own.
	Accept Acceptance
	// History is set for Replace: the number of the server's history that the list is of.
	History int64
}

// Acceptance says which states a cache takes over its own.
type Acceptance uint8

const (
	// AcceptLater takes only later states: what watches and lists bring, servers being what they are.
	AcceptLater Acceptance = iota
	// AcceptEarlier takes earlier ones, too: for the Replace after the server's history went back.
	AcceptEarlier
	// AcceptAll takes every state without comparing: for callers that write into the cache themselves.
	AcceptAll
)
