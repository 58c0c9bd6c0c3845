// Package deltafifo is the log between the reflector, which receives changes, and the indexer, which applies them.
//
// Read delta.go, the entries of the log, then deltafifo.go, the log itself.
package deltafifo
