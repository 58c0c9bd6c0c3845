// Package purge empties an API server before it is removed, so that everything that watches its objects (a load
// balancer's controller, say) learns of each deletion in time.
//
// It works in passes. Each pass lists what there is and deletes it:
//
//	namespaces ─▶ deleted              except those that every API server has, and what it keeps in them for itself
//	objects    ─▶ deleted              kind by kind and namespace by namespace, many at once
//	by force   ─▶ finalizers removed from what is still there
//	empty, terminating namespaces ─▶ finalized: a bare API server has no namespace controller
//
// A pass does not depend on the one before, so a new process can continue after a crash.
package purge
