// Package reflector follows one resource: it lists it, watches it, and appends everything it learns to the log. It
// keeps going until its context ends, whatever the server does.
//
// Read reflector.go, the states; list.go, stream.go and watch.go, what happens in each; recovery.go, the table of what
// follows a failure; backoff.go, the delays. Package connection classifies failed requests.
package reflector
