// Package handler turns the changes of objects into keys.
//
// An [EventHandler] is what source.Kind calls for each event of an informer. [EnqueueObject] queues the object itself,
// [EnqueueOwner] its owner, [EnqueueMapped] what a function returns. [Filter] puts predicates before a handler.
//
// All of it is in handler.go.
//
// Source: controller-runtime v0.25.2 pkg/handler, for the name of the package.
package handler
