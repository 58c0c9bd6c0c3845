// Package purge empties an API server before it is removed. Whatever watches its objects (a load balancer's controller,
// say) then sees each deletion before the server is gone.
//
// It works in passes. Each pass lists what exists and deletes it:
//
//	namespaces ─▶ deleted              except the built-in ones, and the server's own objects in them
//	objects    ─▶ deleted              kind by kind and namespace by namespace, many at once
//	by force   ─▶ finalizers removed from what is still there
//	empty, terminating namespaces ─▶ finalized: a bare API server has no namespace controller
//
// A pass does not depend on the one before it, so a new process can continue after a crash.
package purge
