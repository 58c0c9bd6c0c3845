package informer

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/informer/indexer"
	"github.com/flyball-dev/flyball/informer/internal/connection"
	"github.com/flyball-dev/flyball/informer/internal/fanout"
	"github.com/flyball-dev/flyball/informer/internal/objects"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/informer/reflector"
)

// These are the names that users of an informer meet, of packages that are internal and of the stages. A program that
// puts a pipeline together itself imports the stages.

// Object is what an informer can hold: anything with object metadata.
type Object = listwatch.Object

// Key is the name of obj within its resource: "namespace/name", or "name" for a cluster-scoped object.
func Key(obj metav1.Object) string { return objects.Key(obj) }

// Reading; see package indexer.
type (
	// IndexFunc gives the values under which an index finds an object: none, one or many.
	IndexFunc[T any] = indexer.IndexFunc[T]
	// Snapshot is the cache at one resource version.
	Snapshot[T any] = indexer.Snapshot[T]
)

var (
	// ErrNoIndex reports that the informer has no index of that name.
	ErrNoIndex = indexer.ErrNoIndex
	// ErrIndexExists reports that the informer already has an index of that name.
	ErrIndexExists = indexer.ErrIndexExists
)

// Handlers; see internal/fanout.
type (
	// Handler is told what changes. A nil function is not called; the zero Handler is valid and useless.
	Handler[T any] = fanout.Handler[T]
	// Deleted is an object that is gone.
	Deleted[T any] = fanout.Deleted[T]
	// HandlerOptions say how a handler is served. The zero value works.
	HandlerOptions = fanout.HandlerOptions
	// Registration is a handler in an informer.
	Registration = fanout.Registration
	// HandlerStats counts what a handler was given.
	HandlerStats = fanout.HandlerStats
	// PanicPolicy decides what becomes of a panic in a handler.
	PanicPolicy = fanout.PanicPolicy
	// UndeliveredError reports that a handler was removed before it was told everything.
	UndeliveredError = fanout.UndeliveredError
)

const (
	// ContainPanics logs the panic with its stack, counts it, and goes on with the next notification.
	ContainPanics = fanout.ContainPanics
	// CrashOnPanic lets it end the process.
	CrashOnPanic = fanout.CrashOnPanic
)

// ErrStopped reports that the informer's Run has ended: it cannot be used again for what was asked.
var ErrStopped = fanout.ErrStopped

// ErrNotSharded reports that a list was not restricted to a shard although it was asked to be.
var ErrNotSharded = listwatch.ErrNotSharded

// The connection to the server; see internal/connection.
type (
	// RequestError is a failed list or watch, worded for the person who has to do something about it.
	RequestError = connection.RequestError
	// Backoff is how long an informer waits after failures. The zero value means the defaults.
	Backoff = reflector.Backoff
)
