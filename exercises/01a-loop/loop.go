// Package loop is task 01a: one pass of a control loop that keeps as many Pods running as a user asks for.
//
// Build Reconcile. It is called again and again: every minute, after each change, and at any other time. Each call
// compares what is there with what is wanted, and takes one or more steps to make them equal. It remembers nothing
// between calls. About 40 lines are enough. Read api.go first, which has the API server.
//
// The contract:
//
//   - If the Set "web" wants three Pods, they are web-1, web-2 and web-3. Reconcile creates those that are missing, and
//     deletes others that have the label of the Set. It does not touch the Pods of other Sets.
//   - If nothing needs to change, Reconcile writes nothing: neither Pods nor the status.
//   - If a call of the API fails, Reconcile returns the error at once. Three errors do not count as failures:
//     kube.ErrExists of Create and kube.ErrNotFound of Delete, because another program has done the work, and
//     kube.ErrNotFound of Get, because other programs clean up after a Set that is gone.
//   - When the Pods are right, Reconcile writes their number into Have, unless it is there already.
//   - The program may end between any two calls of the API. The next call of Reconcile, in a new process, continues the
//     work.
//
// Begin with the first test: Get the Set, List its Pods, and create the missing ones.
package loop

// Reconcile creates and deletes Pods until a Set has those that it asks for.
func Reconcile(api API, set string) error {
	panic("not written yet: Reconcile")
}
