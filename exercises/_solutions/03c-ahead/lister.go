// Package ahead fetches all objects, of a version that is not older than the last.
package ahead

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/flyball-dev/flyball/exercises/kube"
)

// StatusError is an answer that is not a list.
type StatusError struct {
	Code    int
	Reason  string // "Expired", "Timeout", …
	Message string
	// Causes are more detailed reasons, such as "ResourceVersionTooLarge". A server before v1.18.6 sends none.
	Causes []string
}

func (e *StatusError) Error() string { return fmt.Sprintf("%d %s: %s", e.Code, e.Reason, e.Message) }

// Server has the objects.
type Server interface {
	// List returns all objects and the version of the list. version is kube.Newest, kube.AnyAge or the oldest
	// that will do.
	List(version int) (names []string, at int, err error)
}

// Lister fetches all objects, again and again. One goroutine uses it.
type Lister struct {
	server Server
	// position is the version of the last list.
	position int
	// newest means that the next request asks for the newest list, because the server cannot serve the position.
	newest bool
}

// New returns a Lister.
func New(server Server) *Lister { return &Lister{server: server, position: kube.AnyAge} }

// List fetches all objects. After an error it is called again, a few seconds later.
func (l *Lister) List() ([]string, error) {
	names, at, err := l.server.List(l.version())
	if isExpired(err) || isTooLarge(err) {
		l.newest = true
		names, at, err = l.server.List(l.version())
	}
	if err != nil {
		return nil, err
	}
	l.position, l.newest = at, false
	return names, nil
}

// version returns the version to ask for.
func (l *Lister) version() int {
	if l.newest {
		return kube.Newest
	}
	return l.position
}

// isExpired reports whether the server no longer has the version.
func isExpired(err error) bool {
	var status *StatusError
	return errors.As(err, &status) && status.Reason == "Expired"
}

// isTooLarge reports whether the server has not reached the version yet.
func isTooLarge(err error) bool {
	var status *StatusError
	return errors.As(err, &status) && (slices.Contains(status.Causes, "ResourceVersionTooLarge") ||
		status.Reason == "Timeout" && strings.HasPrefix(status.Message, "Too large resource version"))
}
