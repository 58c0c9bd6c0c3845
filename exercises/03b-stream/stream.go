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
	for {
		all, complete, err := fromStream(ctx, s)
		switch {
		case ctx.Err() != nil:
			return kube.List{}, ctx.Err()
		case err != nil:
			return s.List(ctx)
		case complete:
			return all, nil
		}
		// The stream ended before the mark. The objects so far are an incomplete list, so they are dropped.
	}
}

// fromStream collects the objects of one stream. complete reports whether the mark has come.
func fromStream(ctx context.Context, s Server) (all kube.List, complete bool, err error) {
	stream, err := s.Stream(ctx)
	if err != nil {
		return kube.List{}, false, err
	}
	defer stream.Close()
	store := kube.NewStore()
	for {
		e, err := stream.Next()
		switch {
		case errors.Is(err, io.EOF):
			return kube.List{}, false, nil
		case err != nil:
			return kube.List{}, false, err
		}
		store.Apply(e)
		if isMark(e) {
			return store.List(), true, nil
		}
	}
}
