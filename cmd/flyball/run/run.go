package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client/manifest"
	"github.com/flyball-dev/flyball/cmd/flyball/nodes"
	"github.com/flyball-dev/flyball/cmd/flyball/store"
	"github.com/flyball-dev/flyball/controllers"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/cel"
	"github.com/flyball-dev/flyball/localapi/kubelet"
	"github.com/flyball-dev/flyball/localapi/storage"
	flyball "github.com/flyball-dev/flyball/manager"
)

// Options configures [Run].
type Options struct {
	// Files are the files and directories to apply, or "-" for In. If there are none, nothing is applied, and the
	// controllers run on the objects in the store.
	Files []string
	In    io.Reader
	// Namespace is the namespace of objects without one.
	Namespace string
	// Controllers are the controllers to run, in the form of kube-controller-manager's flag; empty means none. Kubelet
	// is whether a fake kubelet starts pods.
	Controllers []string
	Kubelet     bool
	// Store is where the objects are stored.
	Store store.Options
	// SkipUnknown skips objects of unknown kinds. Without it they are an error, and nothing is applied.
	SkipUnknown bool
	// Wait makes Run wait for keys that are due later, until every object is current. It is an error if an object is
	// not current in the end. Kinds that no controller handles are an error before anything is applied, unless
	// AcceptUnhandled is set.
	Wait, AcceptUnhandled bool
	// Timeout bounds the whole run. Retries is how often a failing key is retried.
	Timeout time.Duration
	Retries int
	// Output is the format of the output to Out: table, json or yaml. Progress, if not nil, is called with the
	// progress.
	Output   string
	Out      io.Writer
	Summary  io.Writer
	Progress func(flyball.Progress)
}

// Run applies the files, runs the controllers, and reports. Errors: objects that cannot be read or applied, keys that
// failed, objects that are not current although Wait is set, the timeout, a store that fails. Run reports as much as it
// can even if it fails.
func Run(ctx context.Context, o Options) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, o.Timeout, fmt.Errorf("--timeout: %v have passed", o.Timeout))
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
	defer func() {
		if closeErr := objects.Close(); !errors.Is(err, closeErr) { // Close repeats why a store failed
			err = errors.Join(err, closeErr)
		}
	}()
	ctx, release := store.UntilFailed(ctx, objects)
	defer release()
	server, err := localapi.New(localapi.Options{Storage: objects, Tenant: o.Store.Tenant, CEL: cel.New()})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	config := nodes.Quiet(server.RESTConfig())
	config.QPS = -1 // the API has no other clients to protect
	err = converge(ctx, config, objects, manifests, o)
	if store.Failure(objects) != nil {
		return err
	}
	return errors.Join(err, forget(context.WithoutCancel(ctx), objects, o))
}

// forget drops the history of a store on disk: no watch spans two runs, and the next run need not read the history.
func forget(ctx context.Context, objects storage.Storage, o Options) error {
	if o.Store.Dir == "" {
		return nil
	}
	current, _ := objects.Revision()
	return objects.Compact(ctx, current)
}

// converge applies the manifests, runs the controllers, and reports.
func converge(ctx context.Context, config *rest.Config, objects storage.Storage, manifests []manifest.Object,
	o Options,
) error {
	a, err := newApplier(config, objects, o.Store.Tenant, o.Namespace)
	if err != nil {
		return err
	}
	var r report
	if manifests, err = a.check(ctx, manifests, o, &r); err != nil {
		return err
	}
	before, _ := objects.Revision()
	all, failed := a.apply(ctx, manifests)
	if r.objects = all; failed == nil {
		r.ran = true
		r.summary, failed = runControllers(ctx, config, all, o)
	}
	ctx = context.WithoutCancel(ctx) // report even after the timeout
	if err := refresh(ctx, all); err != nil {
		return errors.Join(failed, err)
	}
	if lines := notCurrent(all, o); o.Wait && r.ran && len(lines) > 0 {
		failed = errors.Join(failed, errors.New("some objects are not current:\n  "+strings.Join(lines, "\n  ")))
	}
	if r.changes, err = storage.ChangesSince(ctx, objects, storage.TenantPrefix(o.Store.Tenant), before); err != nil {
		return errors.Join(failed, err)
	}
	return errors.Join(failed, r.write(o))
}

// check returns the manifests to apply. It records in r those of unknown kinds and those that no controller handles.
// Errors: manifests that o does not accept.
func (a *applier) check(ctx context.Context, all []manifest.Object, o Options, r *report) ([]manifest.Object, error) {
	known, unknown, err := a.split(all)
	if err != nil {
		return nil, err
	}
	if len(unknown) > 0 && !o.SkipUnknown {
		return nil, unknownError(unknown)
	}
	unhandled, err := a.unhandled(ctx, known, o)
	if err != nil {
		return nil, err
	}
	if len(unhandled) > 0 && o.Wait && !o.AcceptUnhandled {
		return nil, unhandledError(unhandled)
	}
	r.skipped, r.unhandled = unknown.lines(), unhandled.lines()
	return known, nil
}

// runControllers runs the controllers until there is nothing more to do for the objects.
func runControllers(ctx context.Context, config *rest.Config, all []applied, o Options) (flyball.Summary, error) {
	m, err := build(config, o)
	if err != nil {
		return flyball.Summary{}, err
	}
	return m.RunUntilIdle(ctx, flyball.IdleOptions{
		Wait: o.Wait, Retries: o.Retries, Progress: o.Progress,
		Enough: func(ctx context.Context) bool { return refresh(ctx, all) == nil && len(notCurrent(all, o)) == 0 },
	})
}

// build returns the manager of the controllers and the fake kubelet.
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
