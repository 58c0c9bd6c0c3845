// Package index is task 05a: an index that remembers where it put each object.
//
// A cache tells the index of each new state of an object, and of each deletion. Readers ask for the objects under a
// value. About 70 lines are enough.
//
// The contract:
//
//   - Set gives an object a new state. A function says under which values it is found: none, one or many. The same
//     value twice counts once. What the state before said does not matter any more.
//   - If the function fails, Set returns its error, and the object is found under no value until a state comes on which
//     it works. Other objects are not touched.
//   - Delete takes an object out. It is no error if there is none.
//   - ByValue returns the newest states of the objects under a value, in any order, in a slice that belongs to the
//     caller. Values returns the values under which there is an object, in any order.
//   - Readers get pointers to what is in the index, and some of them change it although they must not. That must not
//     put the index out of order: from the next Set or Delete of that object on, it is right.
//   - The function is called once for each Set, and not at all for Delete.
//
// Any number of goroutines read and write at once.
//
// Begin with the first test. A map from value to objects, by key, and a map from key to the values under which the
// object was put, are all that is needed.
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

// Delete takes the object of that key out.
func (x *Index[T]) Delete(key string) {
	panic("not written yet: Delete")
}

// ByValue returns the objects under a value.
func (x *Index[T]) ByValue(value string) []T {
	panic("not written yet: ByValue")
}

// Values returns the values under which there is an object.
func (x *Index[T]) Values() []string {
	panic("not written yet: Values")
}
