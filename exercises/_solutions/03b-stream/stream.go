// Package stream fetches all objects of a server, as a stream or as a list.
package stream

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/flyball-dev/flyball/exercises/kube"
)

// ErrRefused is the answer of a server that does not stream lists.
var ErrRefused = errors.New("422: sendInitialEvents is forbidden")

// Quiet is how long a server may take to open a stream, and to send each event of it.
const Quiet = 10 * time.Second

// Server has the objects.
type Server interface {
	// Stream opens a stream that begins with all objects. It may return ErrRefused.
	Stream(ctx context.Context) (kube.Watch, error)
	// List returns all objects.
	List(ctx context.Context) (kube.List, error)
}

// isMark reports whether an event is the mark: a bookmark that says that all objects have been sent before it.
func isMark(e kube.Event) bool { return e.Object.Annotations["k8s.io/initial-events-end"] == "true" }

// Start returns all objects.
func Start(ctx context.Context, s Server) (kube.List, error) {
	all, err := fromStream(ctx, s)
	switch {
	case err == nil:
		return all, nil
	case ctx.Err() != nil:
		return kube.List{}, ctx.Err()
	default: // A list needs no mark.
		return s.List(ctx)
	}
}

// fromStream collects the objects of one stream.
//
// Errors: whenever the mark does not come.
func fromStream(ctx context.Context, s Server) (kube.List, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	quiet := time.AfterFunc(Quiet, cancel)
	defer quiet.Stop()
	stream, err := s.Stream(ctx)
	if err != nil {
		return kube.List{}, err
	}
	defer stream.Close()
	store := kube.NewStore()
	for {
		e, err := stream.Next()
		quiet.Reset(Quiet)
		switch {
		case errors.Is(err, io.EOF):
			return kube.List{}, io.ErrUnexpectedEOF
		case err != nil:
			return kube.List{}, err
		}
		store.Apply(e)
		if isMark(e) {
			return store.List(), nil
		}
	}
}
