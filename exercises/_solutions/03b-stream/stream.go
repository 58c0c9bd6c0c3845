// Package stream fetches all objects of a server, as a stream or as a list.
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
	names, version, err = fromStream(ctx, s)
	switch {
	case err == nil:
		return names, version, nil
	case ctx.Err() != nil:
		return nil, 0, ctx.Err()
	default: // A list needs no mark.
		return s.List(ctx)
	}
}

// fromStream collects the objects of one stream.
//
// Errors: whenever the mark does not come.
func fromStream(ctx context.Context, s Server) (names []string, version int, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	quiet := time.AfterFunc(Quiet, cancel)
	defer quiet.Stop()
	stream, err := s.Stream(ctx)
	if err != nil {
		return nil, 0, err
	}
	defer stream.Close()
	there := map[string]bool{}
	for {
		e, err := stream.Next(ctx)
		quiet.Reset(Quiet)
		switch {
		case errors.Is(err, io.EOF):
			return nil, 0, io.ErrUnexpectedEOF
		case err != nil:
			return nil, 0, err
		case e.End:
			return slices.Sorted(maps.Keys(there)), e.Version, nil
		case e.Type == "DELETED":
			delete(there, e.Name)
		case e.Type != "BOOKMARK":
			there[e.Name] = true
		}
	}
}
