// Package predicate says which changes of objects are worth a reconcile.
//
// A [Predicate] is a function of one [Event]. It is put before an event handler by handler.Filter:
//
//	handler.Filter(handler.EnqueueObject[*appsv1.Deployment](), predicate.GenerationChanged[*appsv1.Deployment]())
//
// Predicates drop events, not states: a change that one dropped is still in the cache when the next reconcile looks.
// What a controller must not miss it must not filter: with [GenerationChanged] alone, labels and annotations change
// unheard.
package predicate
