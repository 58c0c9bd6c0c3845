// Package script runs a controller that is written in Starlark, on the loop of package reconcile.
//
// A script has watches, the kind whose objects are the keys; owns, a list of the kinds that it makes; and a function
// reconcile(namespace, name). A kind is written as apiVersion and kind: "apps/v1/Deployment". Objects are dicts. The
// script may call:
//
//	get(kind, namespace, name)     the object, from the cache; None if there is none
//	list(kind, namespace)          the objects, from the cache
//	create(object, owner=None)     creates it; it is then deleted with its owner
//	update(object, owner=None)     replaces it, if its version is still the one that was read
//	delete(kind, namespace, name)  deletes it
//	print(…)                       writes to the log
package script
