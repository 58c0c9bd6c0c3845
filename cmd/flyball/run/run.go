package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client/manifest"
	"github.com/flyball-dev/flyball/cmd/flyball/nodes"
	"github.com/flyball-dev/flyball/cmd/flyball/store"
	"github.com/flyball-dev/flyball/controllers"
	"github.com/flyball-dev/flyball/controllers/deployment"
	"github.com/flyball-dev/flyball/controllers/replicaset"
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

// kubeletName is the name of the fake kubelet among the names of controllers.
const kubeletName = "kubelet"

// handlers lists the controllers needed by kinds that have no effect by themselves. Controllers that Flyball does not
// have are named as in kube-controller-manager.
var handlers = map[schema.GroupKind][]string{
	{Kind: "Pod"}:                                           {kubeletName},
	{Kind: "PersistentVolumeClaim"}:                         {"persistentvolume-binder-controller"},
	{Group: "apps", Kind: "Deployment"}:                     {deployment.Name, replicaset.Name, kubeletName},
	{Group: "apps", Kind: "ReplicaSet"}:                     {replicaset.Name, kubeletName},
	{Group: "apps", Kind: "StatefulSet"}:                    {"statefulset-controller"},
	{Group: "apps", Kind: "DaemonSet"}:                      {"daemonset-controller"},
	{Group: "batch", Kind: "Job"}:                           {"job-controller"},
	{Group: "batch", Kind: "CronJob"}:                       {"cronjob-controller"},
	{Group: "policy", Kind: "PodDisruptionBudget"}:          {"disruption-controller"},
	{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}: {"horizontal-pod-autoscaler-controller"},
}

// definitions returns the CustomResourceDefinitions among the manifests, by the kinds that they define.
func definitions(all []manifest.Object) map[schema.GroupVersionKind]*unstructured.Unstructured {
	found := map[schema.GroupVersionKind]*unstructured.Unstructured{}
	for _, m := range all {
		if m.GroupVersionKind().GroupKind() != definitionKind {
			continue
		}
		group, _, _ := unstructured.NestedString(m.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(m.Object, "spec", "names", "kind")
		for version := range versionsOf(m.Unstructured) {
			found[schema.GroupVersionKind{Group: group, Version: version, Kind: kind}] = m.Unstructured
		}
	}
	return found
}

var definitionKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

// versionsOf returns the served versions of a definition, by name.
func versionsOf(definition *unstructured.Unstructured) map[string]map[string]any {
	found := map[string]map[string]any{}
	list, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	for _, v := range list {
		if version, ok := v.(map[string]any); ok && version["served"] == true {
			found[fmt.Sprint(version["name"])] = version
		}
	}
	return found
}

// named groups objects by a text about them.
type named map[string][]string

func (n named) add(about string, m manifest.Object) {
	n[about] = append(n[about], fmt.Sprintf("%s (%s)", m.GetName(), m.From))
}

// lines returns one line for each text, sorted.
func (n named) lines() []string {
	lines := make([]string, 0, len(n))
	for about, names := range n {
		lines = append(lines, about+": "+strings.Join(names, ", "))
	}
	slices.Sort(lines)
	return lines
}

// split separates the manifests whose kinds are served, or defined by another manifest, from the rest.
func (a *applier) split(all []manifest.Object) (known []manifest.Object, unknown named, err error) {
	unknown = named{}
	defined := definitions(all)
	for _, m := range all {
		kind := m.GroupVersionKind()
		_, err := a.mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if _, ok := defined[kind]; ok || err == nil {
			known = append(known, m)
			continue
		}
		if !meta.IsNoMatchError(err) {
			return nil, nil, fmt.Errorf("%s: find the kind %s: %w", m.From, kind.Kind, err)
		}
		unknown.add(fmt.Sprintf("%s of %s", kind.Kind, kind.GroupVersion()), m)
	}
	return known, unknown, nil
}

// unknownError returns the error for manifests of unknown kinds.
func unknownError(unknown named) error {
	return fmt.Errorf("nothing was applied, because these kinds are not known:\n  %s\nApply their definitions too, or "+
		"leave them out by --skip-unknown-kinds", strings.Join(unknown.lines(), "\n  "))
}

// unhandled returns the manifests of kinds that need a controller which this run does not have.
func (a *applier) unhandled(ctx context.Context, all []manifest.Object, o Options) (named, error) {
	found := named{}
	running, err := runningOf(o)
	if err != nil {
		return nil, err
	}
	defined := definitions(all)
	for _, m := range all {
		kind := m.GroupVersionKind()
		for _, handler := range handlers[kind.GroupKind()] {
			if !running[handler] {
				found.add(fmt.Sprintf("%s (no %s runs)", kind.Kind, handler), m)
				break
			}
		}
		definition := defined[kind]
		if definition == nil {
			if definition, err = a.storedDefinition(ctx, kind); err != nil {
				return nil, err
			}
		}
		if hasStatus(definition, kind.Version) {
			found.add(fmt.Sprintf("%s (no controller of %s runs)", kind.Kind, kind.Group), m)
		}
	}
	return found, nil
}

// runningOf returns the names of the controllers that a run has.
func runningOf(o Options) (map[string]bool, error) {
	running := map[string]bool{kubeletName: o.Kubelet}
	if len(o.Controllers) == 0 {
		return running, nil
	}
	enabled, err := controllers.Enabled(o.Controllers)
	for _, name := range enabled {
		running[name] = true
	}
	return running, err
}

// storedDefinition returns the definition of a kind, or nil for a built-in kind.
func (a *applier) storedDefinition(ctx context.Context,
	kind schema.GroupVersionKind,
) (*unstructured.Unstructured, error) {
	if clientscheme.Scheme.Recognizes(kind) || kind.GroupKind() == definitionKind {
		return nil, nil
	}
	mapping, err := a.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, err
	}
	resource := schema.GroupVersionResource{
		Group: definitionKind.Group, Version: "v1",
		Resource: "customresourcedefinitions",
	}
	definition, err := a.client.Resource(resource).Get(ctx, mapping.Resource.GroupResource().String(),
		metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read the definition of %s: %w", kind.Kind, err)
	}
	return definition, nil
}

// hasStatus reports whether objects of a version have a status, which a controller has to fill in. Objects without one
// are plain data.
func hasStatus(definition *unstructured.Unstructured, version string) bool {
	if definition == nil {
		return false
	}
	_, found, _ := unstructured.NestedMap(versionsOf(definition)[version], "subresources", "status")
	return found
}

// unhandledError returns the error for manifests that --wait would wait for in vain.
func unhandledError(unhandled named) error {
	return errors.New("nothing was applied, because --wait would never end: no controller handles\n  " +
		strings.Join(unhandled.lines(), "\n  ") + "\nTo have them stored and not waited for, add --accept-unhandled")
}
