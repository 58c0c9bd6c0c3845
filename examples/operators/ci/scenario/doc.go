// Package scenario plays a day of a CI system in seconds. A user makes requests, step by step, and checks that the
// operators fulfil them. The package uses only clients of the clusters, so it works on embedded and on real ones: on a
// terminal, in tests, and while the operators are killed.
package scenario
