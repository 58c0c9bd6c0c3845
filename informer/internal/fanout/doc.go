// Package fanout gives every change of the cache to every handler, each at its own pace.
//
// Read handler.go, what users give and get; fanout.go, the log of batches that all handlers read; listener.go, one
// handler's place in that log and its calls; coalesce.go, what a handler that lags is told instead of the log.
package fanout
