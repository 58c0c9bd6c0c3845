package informer

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/informer/handler"
	"github.com/flyball-dev/flyball/informer/indexer"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/informer/objects"
	"github.com/flyball-dev/flyball/informer/reflector"
)

// Most programs use these names of other packages, so they have second names here. A program that assembles a pipeline
// itself imports the packages.

// Object is what an informer can hold: anything with object metadata.
type Object = objects.Object

// Key returns the name of obj within its resource: "namespace/name", or "name" for a cluster-scoped object.
func Key(obj metav1.Object) string { return objects.Key(obj) }

// Handlers; package handler documents their fields.
type (
	// Handler is called for every change of the cache: OnAdd, OnUpdate and OnDelete.
	Handler[T any] = handler.Handler[T]
	// Deleted is what OnDelete gets: the key and the last known state of an object that is gone.
	Deleted[T any] = handler.Deleted[T]
	// HandlerOptions configure the delivery to a handler: its name, its resync interval, how far it may lag.
	HandlerOptions = handler.Options
	// Registration is a handler that was added to an informer.
	Registration = handler.Registration
	// HandlerStats counts the calls of a handler.
	HandlerStats = handler.Stats
	// UndeliveredError reports that a handler was removed before all its changes were delivered.
	UndeliveredError = handler.UndeliveredError
)

// ErrStopped reports that the informer has ended.
var ErrStopped = handler.ErrStopped

// Reading; see package indexer.
type (
	// IndexFunc returns the values under which an index finds an object.
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

// The connection to the server; see packages listwatch and reflector.
type (
	// RequestError is a failed list or watch, worded for the person who has to fix it.
	RequestError = listwatch.RequestError
	// Backoff configures how long an informer waits after failures. The zero value means the defaults.
	Backoff = reflector.Backoff
)

// ErrNotSharded reports that the server ignored the shard selector of a list.
var ErrNotSharded = listwatch.ErrNotSharded
