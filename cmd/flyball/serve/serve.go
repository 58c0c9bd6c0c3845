package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/cmd/flyball/nodes"
	"github.com/flyball-dev/flyball/cmd/flyball/store"
	"github.com/flyball-dev/flyball/controllers"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/cel"
	"github.com/flyball-dev/flyball/localapi/kubelet"
	"github.com/flyball-dev/flyball/localapi/storage"
	"github.com/flyball-dev/flyball/manager"
)

// Options configures [Run].
type Options struct {
	// Addr is the loopback address on which the API listens; port 0 means a free port.
	Addr string
	// AllowedHosts are further host names that clients may use; see [localapi.Options].
	AllowedHosts []string
	// Kubeconfig is the file to which a kubeconfig is written, with the token that every client needs. Empty means a
	// temporary file, which is removed at the end.
	Kubeconfig string
	// Controllers are the controllers to run, in the form of kube-controller-manager's flag; empty means none.
	Controllers []string
	// Kubelet is whether a fake kubelet reports that pods run; without it they stay Pending.
	Kubelet bool
	// RBAC authorizes users by their roles. The user of the kubeconfig may do everything.
	RBAC bool
	// WebhookServices are addresses of webhooks; see [localapi.Options].
	WebhookServices map[string]string
	// Store is where the objects are stored.
	Store store.Options
	// Out receives a message with the API's address.
	Out io.Writer
}

// podDelay is about how long the fake kubelet takes to start a pod. podStop is how long it takes at least to stop one,
// so that a user who polls every second sees it terminate.
const (
	podDelay = 300 * time.Millisecond
	podStop  = 1500 * time.Millisecond
)

// Run serves until ctx is done, and returns when everything has stopped. Errors: the store cannot be opened; the
// address cannot be listened on; the kubeconfig cannot be written; a controller does not exist; a part failed.
func Run(ctx context.Context, o Options) (err error) {
	objects, err := o.Store.Open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, objects.Close()) }()
	defer tellOfFailure(ctx, objects)()
	token := NewToken()
	server, err := localapi.New(localapi.Options{
		Storage: objects, Tenant: o.Store.Tenant, Tokens: Tokens(token), RBAC: o.RBAC, AllowedHosts: o.AllowedHosts,
		WebhookServices: o.WebhookServices,
		CEL:             cel.New(),
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	managers, err := build(server, o)
	if err != nil {
		return err
	}
	socket, err := Open(ctx, o.Addr, token, o.AllowedHosts)
	if err != nil {
		return err
	}
	kubeconfig, remove, err := prepareKubeconfig(o.Kubeconfig, socket)
	if err != nil {
		return errors.Join(err, socket.Close())
	}
	defer remove()
	fmt.Fprintf(o.Out, "The API listens on %s. Ctrl-C stops it.\n%s\n\n  export KUBECONFIG=%s\n\n", socket.Addr(),
		o.fate(), kubeconfig)
	return run(ctx, managers, func(ctx context.Context) error { return socket.Serve(ctx, server) })
}

// tellOfFailure logs when the store no longer accepts writes. The process goes on, because reads still work. The caller
// must call the returned function to release its resources.
func tellOfFailure(ctx context.Context, objects storage.Storage) func() {
	until, release := store.UntilFailed(context.WithoutCancel(ctx), objects)
	var wg sync.WaitGroup
	wg.Go(func() {
		<-until.Done()
		if err := store.Failure(objects); err != nil {
			klog.FromContext(ctx).Error(err, "The store failed, the API is read-only from now on")
		}
	})
	return func() {
		release()
		wg.Wait()
	}
}

// fate returns a message about what happens to pods.
func (o Options) fate() string {
	if o.Kubelet {
		return "Pods are not run: a fake kubelet only reports that they are, on nodes that do not exist " +
			"(--kubelet=off: they stay Pending)."
	}
	return "Pods are not run: they stay Pending (--kubelet=pretend: a fake kubelet reports that they run)."
}

// build returns the managers that run beside the API: one for the nodes and one for the controllers, because on a real
// cluster these are two processes.
func build(server *localapi.Server, o Options) ([]*manager.Manager, error) {
	m, err := manager.New(nodes.Quiet(server.RESTConfig()), manager.Options{})
	if err != nil {
		return nil, err
	}
	add := nodes.AddNamespaces
	if o.Kubelet {
		add = func(m *manager.Manager) error {
			return nodes.Add(m, kubelet.Options{Delay: podDelay, Spread: podDelay / 2, Stop: podStop})
		}
	}
	if err := add(m); err != nil {
		return nil, err
	}
	all := []*manager.Manager{m}
	if len(o.Controllers) > 0 {
		m, err := manager.New(nodes.Quiet(server.RESTConfig()), manager.Options{})
		if err != nil {
			return nil, err
		}
		if err := controllers.Add(m, controllers.Options{Selection: o.Controllers}); err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return all, nil
}

// run runs the managers until serve has returned, and waits for them. The API in this process outlives them.
func run(ctx context.Context, managers []*manager.Manager, serve func(context.Context) error) error {
	serving, stop := context.WithCancel(ctx)
	defer stop()
	running, end := context.WithCancel(context.WithoutCancel(ctx))
	errs := make([]error, len(managers))
	var parts sync.WaitGroup
	for i, m := range managers {
		parts.Go(func() {
			defer stop()
			errs[i] = m.Run(running)
		})
	}
	err := serve(serving)
	end()
	parts.Wait()
	return errors.Join(append(errs, err)...)
}
