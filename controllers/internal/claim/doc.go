// Package claim keeps an owner and the objects it manages in agreement about who owns whom.
//
// Ownership in Kubernetes is written on the owned object: one owner reference with controller=true. A controller
// that manages objects by a label selector has to keep that reference and the selector in step, in both directions:
// it adopts an object nobody owns whose labels match, and it releases an object it owns whose labels no longer
// match. [Claimer] does both and returns what the owner holds afterwards.
//
// The package stands between a controller's cache and its plan: observed objects go in, the claimed ones come out,
// and the plan never sees an object that belongs to somebody else.
package claim
