// Package loop is task 01a: one pass of a control loop, which keeps as many Pods as somebody asked for.
//
// Build Reconcile. It is called again and again: every minute, after each change, and whenever anybody feels like it.
// Each call looks at what is there and makes one step, or several, towards what is wanted. It remembers nothing between
// two calls. About 40 lines are enough. File api.go has the API server: read it first.
//
// The contract:
//
//   - The Pods of the Set "web" that wants three are web-1, web-2 and web-3. Missing ones are created. Others that
//     carry the label of the Set are deleted. The Pods of other Sets are not touched.
//   - When all is well, nothing is written: neither Pods nor status.
//   - When an answer is an error, Reconcile returns it and does no more in this call. Three errors are good news
//     instead: ErrExists of a Create and ErrNotFound of a Delete, since somebody else has done it, and ErrNotFound of
//     Get, since a Set that is gone wants nothing more.
//   - After the Pods, the number of Pods goes into Have, if it is not there already.
//   - The program may end between any two calls of the API. The next call of Reconcile, in a new program, goes on.
//
// Begin with the first test: Get the Set, List its Pods, and create the missing ones.
package loop

// Reconcile makes the Pods of a Set as the Set asks for.
func Reconcile(api API, set string) error {
	panic("not written yet: Reconcile")
}
