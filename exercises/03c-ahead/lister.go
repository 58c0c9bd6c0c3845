// Package ahead is task 03c: a list that fails for ever.
//
// A Lister fetches all objects. Except for the first time, it asks for a list that is not older than its position, so
// that a server that lags behind cannot take the program back in time. If the server has forgotten that version and
// answers 410, it asks for the newest list instead.
//
// A network fails, and comes back. On one machine of a cluster the kubelet, which runs its Pods, logs "Timeout: Too
// large resource version: 40, current: 12" once in some seconds, for days, until somebody restarts it. It uses
// client-go v0.18.3, which has this bug in tools/cache/reflector.go. kubernetes/kubernetes#91073 reports it.
//
// Run the tests, read the code, and find out why the next try asks the same. Then mend it twice: not every server says
// this in the same form, as kubernetes/kubernetes#94316 found out.
package ahead

import (
	"errors"
	"fmt"
)

// Newest asks for the newest list, and AnyAge for whatever the server has at hand. Another version means: not older.
const (
	Newest = ""
	AnyAge = "0"
)

// StatusError is an answer that is not a list.
type StatusError struct {
	Code    int
	Reason  string // "Expired", "Timeout", …
	Message string
	// Causes are further words for programs: "ResourceVersionTooLarge" is one. A server before v1.18.6 sends none.
	Causes []string
}

func (e *StatusError) Error() string { return fmt.Sprintf("%d %s: %s", e.Code, e.Reason, e.Message) }

// Server has the objects.
type Server interface {
	// List returns all objects of a version, and the version at which they were so.
	List(version string) (names []string, at string, err error)
}

// Lister fetches all objects, again and again. One goroutine uses it.
type Lister struct {
	server Server
	// position is the version of the last list.
	position string
	// newest is whether the next list has to be the newest, because the position is of no use.
	newest bool
}

// New returns a Lister.
func New(server Server) *Lister { return &Lister{server: server, position: AnyAge} }

// List fetches all objects. After an error it is called again, in some seconds.
func (l *Lister) List() ([]string, error) {
	names, at, err := l.server.List(l.version())
	if isExpired(err) {
		l.newest = true
		names, at, err = l.server.List(l.version())
	}
	if err != nil {
		return nil, err
	}
	l.position, l.newest = at, false
	return names, nil
}

// version returns what to ask for.
func (l *Lister) version() string {
	if l.newest {
		return Newest
	}
	return l.position
}

// isExpired reports whether the server has forgotten the version.
func isExpired(err error) bool {
	var status *StatusError
	return errors.As(err, &status) && status.Reason == "Expired"
}
