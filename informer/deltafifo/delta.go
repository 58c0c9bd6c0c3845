package deltafifo

import "github.com/flyball-dev/flyball/informer/objects"

// DeltaType is the type of a [Delta].
type DeltaType int

// The types of deltas.
const (
	// Upsert is a new state of one object: an ADDED or MODIFIED event. The two are not distinguished, because the
	// server does not know what the cache holds. The cache decides whether to add or to update.
	Upsert DeltaType = iota
	// Delete is the last state of one object.
	Delete
	// Replace is a complete list. Objects that it does not contain are gone.
	Replace
	// Bookmark only moves the watermark.
	Bookmark
	// Resync repeats the content of the cache to the handlers whose resync is due.
	Resync
)

func (t DeltaType) String() string {
	names := [...]string{"Upsert", "Delete", "Replace", "Bookmark", "Resync"}
	if t < 0 || int(t) >= len(names) {
		return "Unknown"
	}
	return names[t]
}

// Delta is one entry of the log: a change of the resource, or a complete list of it.
type Delta[T any] struct {
	Type DeltaType
	// Object is set for Upsert and Delete.
	Object T
	// Objects is set for Replace. The receiver owns the slice.
	Objects []T
	// Unreadable has objects whose state could not be decoded. In a Replace they come in addition to Objects; in an
	// Upsert or Delete there is one, instead of Object. The cache keeps their last readable state while they exist.
	Unreadable []*objects.DecodeError
	// ResourceVersion is the position in the server's history after this delta; "" for Resync.
	ResourceVersion string
	// Scope is the number of the reflector that the delta came from. The indexer has a watermark for each. An informer
	// with one reflector uses 0.
	Scope int
	// Accept decides about states that are not later than those in the cache.
	Accept Acceptance
	// History is set for Replace: the number of the server's history that the list belongs to.
	History int64
}

// Acceptance decides which states replace those in the cache.
type Acceptance uint8

const (
	// AcceptLater accepts only later states. It is the rule for all watches and lists: a lagging replica may send old
	// ones.
	AcceptLater Acceptance = iota
	// AcceptEarlier also accepts earlier states, in the Replace after the server's history went back.
	AcceptEarlier
	// AcceptAll accepts every state without comparing, for callers that write into the cache themselves.
	AcceptAll
)
