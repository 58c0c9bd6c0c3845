// Package fanout delivers every change of the cache to every handler, each at its own pace.
//
// Read fanout.go first: the log of batches that all handlers read, and how a change gets from the log to a handler's
// function. Then read listener.go, one handler's place in the log, and how a handler joins and leaves; and coalesce.go,
// the buffer that replaces the log for a handler that lags.
package fanout
