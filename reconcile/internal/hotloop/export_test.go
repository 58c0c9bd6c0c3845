package hotloop

import "github.com/flyball-dev/flyball/internal/trail"

// Trail returns the writes that d knows of, from before it looks for them.
func Trail[K comparable](d *Detector[K]) *trail.Trail {
	d.trail.CompareAndSwap(nil, &trail.Trail{})
	return d.trail.Load()
}
