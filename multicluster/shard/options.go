package shard

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/flyball-dev/flyball/manager/leader"
)

// Options configures an [Owner]. The zero value works.
type Options struct {
	// Fleet is the name of the fleet: replicas with the same fleet and namespace share its clusters. It is a DNS label
	// of at most 40 characters. Empty means "fleet".
	Fleet string
	// Namespace is the namespace of the leases, in the local cluster. Empty means "kube-system".
	Namespace string
	// Identity names this replica. The clusters that it serves depend on the name, so a replica that restarts with its
	// name, as the pods of a StatefulSet do, serves the same clusters again. Two processes cannot use a name at the
	// same time: the second one waits until the first has ended. Empty means the host name and a random part.
	Identity string
	// Options are the durations of the replica's own lease. Their zero values mean 15 s, 10 s and 2 s.
	leader.Options
	// Settle is how long a replica must have been a member before it takes or requests a lease. Without this delay, the
	// first of several replicas that start together would take everything, and a replica that crashes again and again
	// would move clusters each time. Zero means RetryPeriod; negative means no delay.
	Settle time.Duration
	// Patience is how long a free lease is left to the replica with the greatest weight, which may not know the cluster
	// yet, before the next in line takes it. Zero means LeaseDuration.
	Patience time.Duration
	// QPS and Burst limit the writes to leases of clusters. Zero means 50 and 100; a negative QPS means no limit.
	// Renewals of the membership do not count.
	QPS   float32
	Burst int
}

// maxFleetLength is how long the name of a fleet may be.
const maxFleetLength = 40

func (o Options) withDefaults() (Options, error) {
	if o.Identity == "" {
		var err error
		if o.Identity, err = leader.Identity(); err != nil {
			return o, err
		}
	}
	o.Fleet = cmp.Or(o.Fleet, "fleet")
	o.Namespace = cmp.Or(o.Namespace, "kube-system")
	o.LeaseDuration = cmp.Or(o.LeaseDuration, 15*time.Second)
	o.RenewDeadline = cmp.Or(o.RenewDeadline, 10*time.Second)
	o.RetryPeriod = cmp.Or(o.RetryPeriod, 2*time.Second)
	o.Settle = cmp.Or(o.Settle, o.RetryPeriod)
	o.Patience = cmp.Or(o.Patience, o.LeaseDuration)
	o.QPS = cmp.Or(o.QPS, 50)
	o.Burst = cmp.Or(max(o.Burst, 0), 100)
	if wrong := validation.IsDNS1123Label(o.Fleet); len(wrong) > 0 {
		return o, fmt.Errorf("fleet name %q: %s", o.Fleet, wrong[0])
	}
	switch {
	case len(o.Fleet) > maxFleetLength:
		return o, fmt.Errorf("fleet name %q is longer than %d characters", o.Fleet, maxFleetLength)
	case o.Patience < 0:
		return o, errors.New("option Patience is negative")
	case strings.ContainsAny(o.Identity, sessionMark+stuckMark):
		return o, fmt.Errorf("identity %q contains %q or %q", o.Identity, sessionMark, stuckMark)
	}
	return o, nil
}
