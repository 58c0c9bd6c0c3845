// Package fanout delivers every change of the cache to every handler, each at its own pace.
//
// Read fanout.go, the log of batches that all handlers read, and a change's way from it to the handler's function;
// listener.go, one handler's place in the log, and how it joins and leaves; coalesce.go, the buffer that replaces the
// log for a handler that lags.
package fanout
