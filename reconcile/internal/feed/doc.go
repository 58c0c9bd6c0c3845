// Package feed runs the sources of a controller, each in its own goroutine, for the loop of package reconcile.
//
// A source runs as long as the controller does. A source that can be run twice may also run earlier, in a warm-up run.
// The keys that it delivers in a warm-up run are held back in a backlog until the controller runs.
//
// Reading order: feed.go, warmup.go, then intake.go.
package feed
