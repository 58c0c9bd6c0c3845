package hotloop

import "github.com/flyball-dev/flyball/internal/trail"

// Trail returns the trail of d, which it makes if there is none.
func Trail[K comparable](d *Detector[K]) *trail.Trail {
	d.trail.CompareAndSwap(nil, &trail.Trail{})
	return d.trail.Load()
}
