// Package readyourwrites holds tests that put the readers of others and ours into the same situations: a reconciler
// that creates a child with a generated name when its cached list has none, while the watch lags and worse.
// docs/read-your-writes.md has the table that they print.
package readyourwrites
