// Package clientgo offers Flyball's informer and cache under the names of k8s.io/client-go/tools/cache. A controller
// that imports this package instead behaves as before, except for the differences listed below. It compiles unchanged,
// unless it uses one of the names that docs/swap-in.md lists as absent. It then has to import client-go's package as
// well.
//
//	generated factory ──InformerFor──▶ NewSharedIndexInformer ──▶ informer.SharedInformer
//	NewReflector ─────ReflectorStore────▶ reflector.Reflector
//	generated lister  ──cache.Indexer────────────────────────▶ indexer.Indexer
//
// The interfaces are client-go's own, so the values of this package fit wherever client-go's do: in generated factories
// (InformerFor), generated listers, controller-runtime's cache.Options.NewInformer. Keys and handler adapters are
// client-go's as well, since they only compute. Informers, indexers and stores are Flyball's.
//
// # What is kept
//
// The contract of client-go's SharedInformer is kept even where package informer has another:
//
//   - Every update is delivered. Nothing is merged, so only memory limits the backlog of a slow handler.
//   - The UID does not identify an object. If an object was deleted and created again while no watch was open, handlers
//     get one OnUpdate, from the old UID to the new one.
//   - The state that arrives last is the newest, whatever its resource version. Objects of fake clients have no
//     version, or never change it.
//   - An informer without a resync period does not resync, whatever its handlers ask for.
//   - A panic in a handler ends the process, unless k8s.io/apimachinery/pkg/util/runtime.ReallyCrash is false.
//
// # What differs
//
//   - A relist does not call handlers for objects that did not change. (client-go sometimes calls OnUpdate with the
//     same resource version.)
//   - The deletion of an object that the cache never held does not call OnDelete.
//   - The resource version of a store is the highest one so far, not that of the last write. Deletions and bookmarks
//     move it, too.
//   - Writing into the store of an informer does not move the store's resource version.
//   - If an index function fails, its object is missing from that index. (client-go panics, with the lock held.)
//   - A transform runs once per state. If it fails the object is retried, not lost.
//   - An object of the wrong type in a watch is reported and leads to a list. It is not skipped.
//   - Objects of informers must have metadata, as all API objects do. Stores hold anything.
//   - The metrics of InformerMetricsProvider are not kept: see package informer/metrics.
package clientgo
