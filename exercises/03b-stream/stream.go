// Package stream is task 03b: a program that never gets ready.
//
// Start fetches all objects when a program starts. It asks for them as a stream, in which the server sends every object
// and then a mark, which means that these were all. A server that cannot do this rejects the request, and Start asks
// for a list instead.
//
// One day an API server of a cluster accepts the request, sends the objects, and never sends the mark. After a while it
// closes the stream. A controller in kube-controller-manager watches the objects of this server, among many others. It
// never gets ready, so it does not work for any object of the cluster, and the log has no error. client-go v0.37.2 has
// this bug in tools/cache/reflector.go, and kubernetes/kubernetes#140890 reports it.
//
// Run the tests, read the code, and find the case in which Start never returns. There is a second one.
package stream

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"time"
)

// ErrRefused is the answer of a server that does not stream lists.
var ErrRefused = errors.New("422: sendInitialEvents is forbidden")

// Quiet is how long a stream may pause between two events.
const Quiet = 10 * time.Second

// Event is a line of a stream.
type Event struct {
	Type    string // ADDED, MODIFIED, DELETED or BOOKMARK
	Name    string
	Version int
	// End is the mark, which a bookmark may have: all objects have been sent before it.
	End bool
}

// Stream is an open stream.
type Stream interface {
	// Next waits for the next event. It returns io.EOF when the server has closed the stream, and an error when ctx is
	// done.
	Next(ctx context.Context) (Event, error)
	Close()
}

// Server has the objects.
type Server interface {
	// Stream opens a stream that begins with all objects. It may return ErrRefused.
	Stream(ctx context.Context) (Stream, error)
	// List returns all objects and the version of the list.
	List(ctx context.Context) (names []string, version int, err error)
}

// Start returns all objects, sorted by name, and their version.
func Start(ctx context.Context, s Server) (names []string, version int, err error) {
	for {
		names, version, complete, err := fromStream(ctx, s)
		switch {
		case ctx.Err() != nil:
			return nil, 0, ctx.Err()
		case err != nil:
			return s.List(ctx)
		case complete:
			return names, version, nil
		}
		// The stream ended before the mark. The objects so far are an incomplete list, so they are dropped.
	}
}

// fromStream collects the objects of one stream. complete reports whether the mark has come.
func fromStream(ctx context.Context, s Server) (names []string, version int, complete bool, err error) {
	stream, err := s.Stream(ctx)
	if err != nil {
		return nil, 0, false, err
	}
	defer stream.Close()
	there := map[string]bool{}
	for {
		e, err := stream.Next(ctx)
		switch {
		case errors.Is(err, io.EOF):
			return nil, 0, false, nil
		case err != nil:
			return nil, 0, false, err
		case e.End:
			return slices.Sorted(maps.Keys(there)), e.Version, true, nil
		case e.Type == "DELETED":
			delete(there, e.Name)
		case e.Type != "BOOKMARK":
			there[e.Name] = true
		}
	}
}
