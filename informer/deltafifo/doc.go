// Package deltafifo is the log between the reflector, which learns what changed, and the indexer, which applies it.
//
// Read delta.go, what a reflector can learn, then deltafifo.go, the log.
package deltafifo
