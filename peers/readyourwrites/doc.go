// Package readyourwrites puts the clients of Flyball and of other projects into the same situations: a reconciler
// creates a child with a generated name if its cached list has none, while the watch lags, or worse.
// docs/read-your-writes.md has the table that the tests print.
package readyourwrites
