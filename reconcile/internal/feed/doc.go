// Package feed runs the sources of a controller, each in a goroutine. It is a room beside the loop of package
// reconcile.
//
// A source runs from when the controller does. One that can be run again may run before, in a warm-up run: what it
// feeds is held back in a backlog until the controller works.
//
// Reading order: feed.go, warmup.go, then intake.go.
package feed
