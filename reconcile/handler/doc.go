// Package handler turns the events of objects into keys.
//
// source.Kind calls an [EventHandler] for each event of an informer. [EnqueueObject] queues the object itself,
// [EnqueueOwner] its owner, and [EnqueueMapped] the keys that a function returns. [Filter] puts predicates before a
// handler.
//
// All of it is in handler.go.
//
// Source: controller-runtime v0.25.2 pkg/handler, for the name of the package.
package handler
