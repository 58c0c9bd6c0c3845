package envtest

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/flyball-dev/flyball/localapi/gate"
)

// removalDelay is how much later than it happens a watch hears that a pod is gone.
const removalDelay = 10 * time.Millisecond

// pace is the gate of an environment: that of its user, and one habit of a kube-apiserver that suites count on.
//
// A pod without a node is marked for deletion and removed by one request. For kube-apiserver these are two writes to etcd, some
// milliseconds apart, in which a controller finds the marked pod in its cache; suites have specs that pass only then. Here both
// happen at once, so the cache would have lost the pod before the controller looks.
type pace struct{ gate.Gate }

// paced returns the gate of an environment whose user gave g, which may be nil.
func paced(g gate.Gate) gate.Gate {
	if g == nil {
		g = gate.Funcs{}
	}
	return pace{g}
}

// Frame implements [gate.Gate].
func (p pace) Frame(ctx context.Context, r *gate.Request, f gate.Frame) gate.Verdict {
	if f.Type == watch.Deleted && r.Group == "" && r.Resource == "pods" {
		timer := time.NewTimer(removalDelay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	return p.Gate.Frame(ctx, r, f)
}
