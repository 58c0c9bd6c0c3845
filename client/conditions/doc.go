// Package conditions sets the conditions in the status of an object.
//
// Compute the conditions and set them once, at the end of a reconcile. A condition that becomes Unknown at the
// beginning and True at the end gets a new transition time in every pass. That changes the object, which triggers the
// reconciler again.
package conditions
