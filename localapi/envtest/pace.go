package envtest

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/flyball-dev/flyball/localapi/gate"
)

// removalDelay is how long the news that a pod is gone is held back from watches.
const removalDelay = 10 * time.Millisecond

// pace is the gate of an environment. It wraps the user's gate and imitates one habit of a kube-apiserver that suites
// count on.
//
// One request both marks a pod without a node for deletion and removes it. For kube-apiserver these are two writes to
// etcd, some milliseconds apart. In between, a controller finds the marked pod in its cache, and some suites have specs
// that pass only then. Here both happen at once, so without the delay the cache would lose the pod before the
// controller looks.
type pace struct{ gate.Gate }

// paced returns the gate of an environment whose user set the gate g, which may be nil.
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
