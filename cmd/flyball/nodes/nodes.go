package nodes

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/localapi/cluster"
	"github.com/flyball-dev/flyball/localapi/kubelet"
	"github.com/flyball-dev/flyball/manager"
)

// NotRun is the message in the status of every pod.
const NotRun = "Nothing of this pod is run: a fake kubelet only reports that it is."

// Add adds a fake kubelet and the namespace controller to a manager.
func Add(m *manager.Manager, o kubelet.Options) error {
	return errors.Join(AddKubelet(m, o), cluster.AddNamespaces(m, nil))
}

// AddKubelet adds a fake kubelet to a manager.
func AddKubelet(m *manager.Manager, o kubelet.Options) error {
	o.Message, o.Recorder = NotRun, m.GetEventRecorderFor(corev1.DefaultSchedulerName)
	k, err := kubelet.New(m.GetClient(), m.Informers(), o)
	if err != nil {
		return err
	}
	return m.Add(k)
}

// Quiet makes clients of config ignore the server's warnings. Some controllers must use deprecated types, so warning
// the user about them is of no use.
//
// Source: k8s.io/kubernetes v1.37.2 cmd/kube-controller-manager/app/controllermanager.go PersistentPreRunE.
func Quiet(config *rest.Config) *rest.Config {
	config.WarningHandler, config.WarningHandlerWithContext = nil, rest.NoWarnings{}
	return config
}

// settleTimeout bounds [Settle]: the controllers may find a lot to do in a store.
const settleTimeout = 5 * time.Second

// Settle waits until a manager has started and has nothing left to do, so that a tap that then pauses it holds up none
// of the work of the start.
func Settle(ctx context.Context, m *manager.Manager) {
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	m.WaitUntilIdle(ctx)
}
