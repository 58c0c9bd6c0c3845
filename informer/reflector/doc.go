// Package reflector follows one resource: it lists it, watches it, and appends what it learns to the log, for as
// long as its context lives and whatever the server does.
//
// Read reflector.go, the states; list.go, stream.go and watch.go, what is done in each; recovery.go, the table of what
// follows a failure; backoff.go, how long it pauses. What a failed request means is package connection.
package reflector
