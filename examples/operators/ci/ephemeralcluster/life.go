package ephemeralcluster

import (
	"fmt"
	"time"

	"github.com/flyball-dev/flyball/examples/operators/ci/api"
)

// life is the lifetime of a cluster.
type life struct {
	// ttl is the whole lifetime. Zero means unlimited.
	ttl time.Duration
	// left is the time left, zero or less when it is over. It has no meaning without a ttl.
	left time.Duration
}

// lifeOf returns the lifetime of ec at now. It begins with the creation of ec.
func (o *Options) lifeOf(ec *api.EphemeralCluster, now time.Time) life {
	ttl := o.TimeToLive
	if ec.Spec.TimeToLive != nil {
		ttl = ec.Spec.TimeToLive.Duration
	}
	return life{ttl, ec.CreationTimestamp.Add(ttl).Sub(now)}
}

func (l life) over() bool { return l.ttl > 0 && l.left <= 0 }

// sooner returns the shorter of the remaining lifetime and d. A zero d means no delay.
func (l life) sooner(d time.Duration) time.Duration {
	if l.ttl > 0 && l.left > 0 && (d == 0 || l.left < d) {
		return l.left
	}
	return d
}

func (l life) String() string { return fmt.Sprintf("the time to live of %v is over", l.ttl) }
