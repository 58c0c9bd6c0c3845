// Package predicate decides which changes of objects lead to a reconcile.
//
// A [Predicate] is a function of one [Event]. handler.Filter puts it before an event handler:
//
//	handler.Filter(handler.EnqueueObject[*appsv1.Deployment](), predicate.GenerationChanged[*appsv1.Deployment]())
//
// A predicate drops an event, not the change: the cache has the change, and the next reconcile sees it. But that
// reconcile may come much later. A controller must not drop events that it depends on: with [GenerationChanged] alone,
// it misses changes of labels and annotations.
package predicate
