package ephemeralcluster

import (
	"fmt"
	"time"

	"github.com/flyball-dev/flyball/examples/operators/ci/api"
)

// life is how long a cluster may be there.
type life struct {
	// ttl is how long that is; zero is for ever.
	ttl time.Duration
	// left is what is left of it; zero or less when it is over. It has no meaning without a ttl.
	left time.Duration
}

// lifeOf returns how long ec may be there, at now. It begins when ec was created.
func (o *Options) lifeOf(ec *api.EphemeralCluster, now time.Time) life {
	ttl := o.TimeToLive
	if ec.Spec.TimeToLive != nil {
		ttl = ec.Spec.TimeToLive.Duration
	}
	return life{ttl, ec.CreationTimestamp.Add(ttl).Sub(now)}
}

func (l life) over() bool { return l.ttl > 0 && l.left <= 0 }

// sooner returns the delay until the end of the life or d, whichever is less; d of zero is no delay.
func (l life) sooner(d time.Duration) time.Duration {
	if l.ttl > 0 && l.left > 0 && (d == 0 || l.left < d) {
		return l.left
	}
	return d
}

func (l life) String() string { return fmt.Sprintf("the time to live of %v is over", l.ttl) }
