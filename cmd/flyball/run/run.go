package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client/manifest"
	"github.com/flyball-dev/flyball/cmd/flyball/nodes"
	"github.com/flyball-dev/flyball/cmd/flyball/store"
	"github.com/flyball-dev/flyball/controllers"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/kubelet"
	"github.com/flyball-dev/flyball/localapi/storage"
	flyball "github.com/flyball-dev/flyball/manager"
)

// Options configures [Run].
type Options struct {
	// Files are what to apply: files, directories, "-" for In. None: nothing is applied, the store is converged.
	Files []string
	In    io.Reader
	// Namespace is that of objects that name none.
	Namespace string
	// Controllers are those to run, in the form of kube-controller-manager's flag; none if empty. Kubelet is whether pods are started
	// by a fake kubelet.
	Controllers []string
	Kubelet     bool
	// Store is where the objects are.
	Store store.Options
	// Wait makes keys that are due later be waited for. Timeout bounds all of the run. Retries is how often a failing key is tried again.
	Wait    bool
	Timeout time.Duration
	Retries int
	// Output is the form of what is written to Out: table, json or yaml. Progress is told how it goes; nil: nobody is.
	Output   string
	Out      io.Writer
	Summary  io.Writer
	Progress func(flyball.Progress)
}

// Run applies, converges and reports. Errors: objects that cannot be read or applied, keys that failed, the end of the time. What can
// be told of the objects is, all the same.
func Run(ctx context.Context, o Options) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, o.Timeout, fmt.Errorf("--timeout: %v are over", o.Timeout))
	defer cancel()
	var manifests []manifest.Object
	if len(o.Files) > 0 {
		if manifests, err = manifest.ReadFiles(o.Files, o.In); err != nil {
			return err
		}
	}
	objects, err := o.Store.Open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, objects.Close()) }()
	server, err := localapi.New(localapi.Options{Storage: objects, Tenant: o.Store.Tenant})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	config := nodes.Quiet(server.RESTConfig())
	config.QPS = -1 // nobody else is to be protected
	return errors.Join(converge(ctx, config, objects, manifests, o), forget(context.WithoutCancel(ctx), objects, o))
}

// forget drops the history of a store on disk: nobody watches between two runs, and the next one need not read it.
func forget(ctx context.Context, objects storage.Storage, o Options) error {
	if o.Store.Dir == "" {
		return nil
	}
	current, _ := objects.Revision()
	return objects.Compact(ctx, current)
}

// converge applies the manifests to the API, runs the controllers, and reports.
func converge(ctx context.Context, config *rest.Config, objects storage.Storage, manifests []manifest.Object, o Options) error {
	before, _ := objects.Revision()
	a, err := newApplier(config, objects, o.Store.Tenant, o.Namespace)
	if err != nil {
		return err
	}
	all, err := a.apply(ctx, manifests)
	if err != nil {
		return err
	}
	m, err := build(config, o)
	if err != nil {
		return err
	}
	summary, failed := m.RunUntilIdle(ctx, flyball.IdleOptions{Wait: o.Wait, Retries: o.Retries, Progress: o.Progress})
	ctx = context.WithoutCancel(ctx) // what there is is told, even when the time is over
	if err := refresh(ctx, all); err != nil {
		return errors.Join(failed, err)
	}
	changes, err := storage.ChangesSince(ctx, objects, storage.TenantPrefix(o.Store.Tenant), before)
	if err != nil {
		return errors.Join(failed, err)
	}
	return errors.Join(failed, report{objects: all, changes: changes, summary: summary}.write(o))
}

// build makes the manager of everything that works.
func build(config *rest.Config, o Options) (*flyball.Manager, error) {
	m, err := flyball.New(config, flyball.Options{})
	if err != nil {
		return nil, err
	}
	if o.Kubelet {
		if err := nodes.Add(m, kubelet.Options{}); err != nil {
			return nil, err
		}
	}
	if len(o.Controllers) > 0 {
		if err := controllers.Add(m, controllers.Options{Selection: o.Controllers}); err != nil {
			return nil, err
		}
	}
	return m, nil
}
