// Package scenario is a day of a CI system in seconds: somebody who asks for things, step by step, and looks whether the operators
// do them. It knows the clusters by clients alone, so it plays on embedded ones and on real ones: on a terminal, in tests, while
// the operators are killed.
package scenario
