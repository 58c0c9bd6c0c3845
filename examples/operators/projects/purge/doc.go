// Package purge empties an API server that is about to be taken away, so that whoever watches what is in it (a load balancer's
// controller, say) hears of each deletion before there is nobody to hear it from.
//
// It goes in passes, each of which looks at what there is and tells it to go:
//
//	namespaces ─▶ deleted              those that every API server has are left, with what it keeps in them for itself
//	objects    ─▶ deleted              kind by kind and namespace by namespace, many at once
//	by force   ─▶ finalizers taken off what is still there
//	empty, terminating namespaces ─▶ finalized: a bare API server has no namespace controller
//
// A pass knows nothing of the one before: whoever is killed between two of them goes on with the next.
package purge
