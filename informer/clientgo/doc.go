// Package clientgo is Flyball's informer and cache under the names of k8s.io/client-go/tools/cache. A program that imports
// this package instead compiles and behaves as before, less the faults:
//
//	generated factory ──InformerFor──▶ NewSharedIndexInformer ──▶ informer.SharedInformer[Object]
//	generated lister  ──cache.Indexer────────────────────────▶ informer.Indexer[Object]
//
// The interfaces are client-go's own, so what comes from here fits wherever one of client-go's is asked for: in generated
// factories (InformerFor), generated listers, controller-runtime's cache.Options.NewInformer. What only computes, keys and
// handler adapters, is client-go's as well; everything that keeps state or runs is Flyball's.
//
// Handlers get every update, as client-go promises: nothing is merged, and the backlog of a slow handler is only
// bounded by memory. The differences that remain are meant:
//
//   - An object deleted and created again while no watch was open is OnDelete and OnAdd, not one OnUpdate between two UIDs.
//   - A relist of unchanged objects calls nobody. (client-go: OnUpdate with the same resource version, sometimes.)
//   - An event for an object that the cache never held is no OnDelete; a state older than the cached one is no OnUpdate.
//   - The resource version of a store is the highest, not the last, and moves with deletions and bookmarks.
//   - An index function that fails leaves its object out of that index. (client-go: panic under the lock.)
//   - A transform runs once per state; if it fails the object is retried, not lost.
//   - A panicking handler goes on with the next notification, and the informer with it.
//   - A handler's resync period is honoured even when the informer itself was made without one.
//   - Objects must have metadata, as all API objects have. (Stores hold anything.)
package clientgo
