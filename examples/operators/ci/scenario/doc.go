// Package scenario is a day of a CI system in seconds: a user requests things, step by step, and checks that the
// operators provide them. It uses only clients of the clusters, so it works on embedded and on real ones: on a
// terminal, in tests, and while the operators are killed.
package scenario
