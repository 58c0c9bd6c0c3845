package shard

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/flyball-dev/flyball/manager/leader"
)

// Options configures an [Owner]. The zero value works.
type Options struct {
	// Fleet names what is shared: replicas with the same name and namespace share it, and others do not see it. A DNS
	// label of at most 40 characters. Empty means "fleet".
	Fleet string
	// Namespace is where the leases are, in the local cluster. Empty means "kube-system".
	Namespace string
	// Identity names this replica. It decides which clusters are its share, so a replica that starts again under the
	// name it had (the pod's, in a StatefulSet) gets those that it had. No two processes may use one at a time: the
	// second one waits until the first has ended. Empty means the host's name and a random part.
	Identity string
	// Options are the times of a membership: 15 s, 10 s and 2 s.
	leader.Options
	// Settle is how long a replica is a member before it takes or asks for anything, so that of replicas that start
	// together the first one does not take all, and one that starts again and again moves nothing. Zero means
	// RetryPeriod; negative: none.
	Settle time.Duration
	// Patience is how long a cluster that nobody serves is left to the replica that should, before the next in line
	// takes it: the one that should may not know of the cluster. Zero means LeaseDuration.
	Patience time.Duration
	// QPS and Burst limit the writes to leases of clusters. Zero means 50 and 100; a negative QPS is no limit. The
	// membership's renewals do not count.
	QPS   float32
	Burst int
}

const (
	defaultFleet     = "fleet"
	defaultNamespace = "kube-system"
	defaultQPS       = 50
	defaultBurst     = 100
	longestFleet     = 40
)

// The defaults of leader.Options.
const (
	defaultLeaseDuration = 15 * time.Second
	defaultRenewDeadline = 10 * time.Second
	defaultRetryPeriod   = 2 * time.Second
)

func (o Options) withDefaults() (Options, error) {
	if o.Fleet == "" {
		o.Fleet = defaultFleet
	}
	if o.Namespace == "" {
		o.Namespace = defaultNamespace
	}
	if o.Identity == "" {
		var err error
		if o.Identity, err = leader.Identity(); err != nil {
			return o, err
		}
	}
	setDefault(&o.LeaseDuration, defaultLeaseDuration)
	setDefault(&o.RenewDeadline, defaultRenewDeadline)
	setDefault(&o.RetryPeriod, defaultRetryPeriod)
	setDefault(&o.Settle, o.RetryPeriod)
	setDefault(&o.Patience, o.LeaseDuration)
	if o.QPS == 0 {
		o.QPS = defaultQPS
	}
	if o.Burst <= 0 {
		o.Burst = defaultBurst
	}
	return o, o.validate()
}

func setDefault(d *time.Duration, value time.Duration) {
	if *d == 0 {
		*d = value
	}
}

func (o Options) validate() error {
	if wrong := validation.IsDNS1123Label(o.Fleet); len(wrong) > 0 {
		return fmt.Errorf("the fleet's name %q: %s", o.Fleet, wrong[0])
	}
	if len(o.Fleet) > longestFleet {
		return fmt.Errorf("the fleet's name %q is longer than %d characters", o.Fleet, longestFleet)
	}
	if o.Patience < 0 {
		return errors.New("the patience is negative")
	}
	if strings.ContainsAny(o.Identity, sessionMark+stuckMark) {
		return fmt.Errorf("the identity %q contains %q or %q", o.Identity, sessionMark, stuckMark)
	}
	return nil
}

// retryAfter is how long an answer to one request on a lease is waited for, and how long until it is tried again.
func (o Options) retryAfter() time.Duration { return o.RetryPeriod }
