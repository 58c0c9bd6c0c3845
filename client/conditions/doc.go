// Package conditions sets the conditions in the status of an object.
//
// Compute the conditions once, at the end of a reconcile, and set them then: one that is set to Unknown at the
// beginning and to True at the end changes its time in every pass, and so the object, which wakes the reconciler
// again.
package conditions
