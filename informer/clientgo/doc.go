// Package clientgo is Flyball's informer and cache under the names of k8s.io/client-go/tools/cache. A controller that
// imports this package instead behaves as before, less the faults. It compiles as before unless it uses one of the
// names that docs/swap-in.md lists as absent: such a program imports client-go's package, too.
//
//	generated factory ──InformerFor──▶ NewSharedIndexInformer ──▶ informer.SharedInformer
//	NewReflector ─────ReflectorStore────▶ reflector.Reflector
//	generated lister  ──cache.Indexer────────────────────────▶ indexer.Indexer
//
// The interfaces are client-go's own, so what comes from here fits wherever one of client-go's is asked for: in
// generated factories (InformerFor), generated listers, controller-runtime's cache.Options.NewInformer. What only
// computes, keys and handler adapters, is client-go's as well; informers, indexers and stores are Flyball's.
//
// # What is kept
//
// The contract of client-go's SharedInformer, also where that of package informer is another:
//
//   - Every update is delivered: nothing is merged, and the backlog of a slow handler is bounded by memory alone.
//   - A UID has no part in saying which object it is: an object deleted and created again while no watch was open is
//     one OnUpdate between two UIDs.
//   - States count in the order they come, whatever their resource versions: clients made for tests have none, or do
//     not change them.
//   - An informer made without a resync period does not resync, whatever its handlers ask for.
//   - A panic in a handler ends the process, unless k8s.io/apimachinery/pkg/util/runtime.ReallyCrash says otherwise.
//
// # What differs
//
//   - A relist tells nobody of objects that did not change. (client-go: OnUpdate with the same resource version,
//     sometimes.)
//   - A deletion of an object that the cache never held is no OnDelete.
//   - The resource version of a store is the highest, not that of the last write, and moves with deletions and
//     bookmarks.
//   - What a program writes into the store of an informer does not move the store's resource version.
//   - An index function that fails leaves its object out of that index. (client-go: panic under the lock.)
//   - A transform runs once per state; if it fails the object is retried, not lost.
//   - An object of a wrong type in a watch is reported and leads to a list, not skipped.
//   - Objects of informers must have metadata, as all API objects have. (Stores hold anything.)
//   - The metrics of InformerMetricsProvider are not kept: see package informer/metrics.
package clientgo
