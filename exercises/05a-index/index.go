// Package index is task 05a: an index that remembers where it put each object.
//
// A cache calls the index for each new state of an object, and for each deletion. Readers ask for the objects that have
// a value. About 70 lines are enough.
//
// The contract:
//
//   - Set gives an object a new state. A function returns the values under which the object is found: none, one or
//     many. If it returns a value twice, that counts once. The values of the previous state no longer apply.
//   - If the function fails, Set returns its error, and the object is found under no value until a later Set succeeds.
//     Other objects are not affected.
//   - Delete removes an object. It is no error if there is none.
//   - ByValue returns the newest states of the objects under a value, in any order, in a slice that belongs to the
//     caller. Values returns the values that have an object, in any order.
//   - Readers get pointers to the objects in the index, and some readers change these objects although they must not.
//     The index may then be wrong for that object, but only until its next Set or Delete.
//   - The function is called once for each Set, and never for Delete. It may be slow: while it runs, readers do not
//     wait. The slice that it returns may be a part of the object, so Set does not change it.
//
// Any number of goroutines read and write at the same time.
//
// Begin with the first test. Two maps are all that you need: one from each value to its objects, by key, and one from
// each key to the values under which its object was put.
package index

// Index finds objects by the values that a function gives them.
type Index[T any] struct{}

// New returns an empty index.
func New[T any](values func(T) ([]string, error)) *Index[T] {
	panic("not written yet: New")
}

// Set gives the object of that key a new state.
func (x *Index[T]) Set(key string, obj T) error {
	panic("not written yet: Set")
}

// Delete removes the object of that key.
func (x *Index[T]) Delete(key string) {
	panic("not written yet: Delete")
}

// ByValue returns the objects under a value.
func (x *Index[T]) ByValue(value string) []T {
	panic("not written yet: ByValue")
}

// Values returns the values that have an object.
func (x *Index[T]) Values() []string {
	panic("not written yet: Values")
}
