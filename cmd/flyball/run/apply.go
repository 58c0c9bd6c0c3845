package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	cached "k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/flyball-dev/flyball/client/manifest"
	"github.com/flyball-dev/flyball/cmd/flyball/store"
	"github.com/flyball-dev/flyball/localapi/storage"
)

// manager is the field manager of applied fields.
const manager = "flyball-run"

// parallel is how many objects are applied at once. On disk, concurrent writes share a flush.
const parallel = 16

// change is what an apply did.
type change string

const (
	created    change = "created"
	configured change = "configured"
	unchanged  change = "unchanged"
)

// applied is an object that was applied.
type applied struct {
	*unstructured.Unstructured
	client dynamic.ResourceInterface
	change change
}

// applier applies manifests to an API, whose store it knows.
type applier struct {
	client    dynamic.Interface
	mapper    *restmapper.DeferredDiscoveryRESTMapper
	objects   storage.Storage
	tenant    string
	namespace string // of objects without a namespace
}

func newApplier(config *rest.Config, objects storage.Storage, tenant, namespace string) (*applier, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	found, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	return &applier{
		client: client, mapper: restmapper.NewDeferredDiscoveryRESTMapper(cached.NewMemCacheClient(found)),
		objects: objects, tenant: tenant, namespace: namespace,
	}, nil
}

// apply applies all objects, in order where the order matters. It tries each object even if another fails, and returns
// those that were applied.
func (a *applier) apply(ctx context.Context, all []manifest.Object) ([]applied, error) {
	first, rest := manifest.Order(all)
	results, errs := make([]applied, len(all)), make([]error, len(all))
	for i, m := range first {
		results[i], errs[i] = a.applyOne(ctx, m)
	}
	a.mapper.Reset() // for the types that were just defined
	var group errgroup.Group
	group.SetLimit(parallel)
	for i, m := range rest {
		group.Go(func() error {
			results[len(first)+i], errs[len(first)+i] = a.applyOne(ctx, m)
			return nil
		})
	}
	_ = group.Wait() // the errors are in errs
	results = slices.DeleteFunc(results, func(r applied) bool { return r.Unstructured == nil })
	return results, a.explain(ctx, errs)
}

// explain joins the errors of objects. It merges the errors whose common cause is the end of ctx or a failed store into
// one.
func (a *applier) explain(ctx context.Context, errs []error) error {
	cause := store.Failure(a.objects)
	if cause == nil {
		cause = context.Cause(ctx)
	}
	if cause == nil {
		return errors.Join(errs...)
	}
	ended := 0
	others := slices.DeleteFunc(slices.Clone(errs), func(err error) bool {
		is := err != nil &&
			(ctx.Err() != nil && errors.Is(err, ctx.Err()) || strings.Contains(err.Error(), cause.Error()))
		if is {
			ended++
		}
		return err == nil || is
	})
	if ended > 0 {
		others = append(others, fmt.Errorf("%d of %d objects were not applied: %w", ended, len(errs), cause))
	}
	return errors.Join(others...)
}

func (a *applier) applyOne(ctx context.Context, m manifest.Object) (applied, error) {
	kind := m.GroupVersionKind()
	fail := func(err error) (applied, error) {
		return applied{}, fmt.Errorf("%s: apply %s %s: %w", m.From, kind.Kind, m.GetName(), err)
	}
	mapping, err := a.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return fail(err)
	}
	key := storage.Key{
		Tenant: a.tenant, Group: mapping.Resource.Group, Resource: mapping.Resource.Resource,
		Name: m.GetName(),
	}
	var client dynamic.ResourceInterface = a.client.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		if m.GetNamespace() == "" {
			m.SetNamespace(a.namespace)
		}
		key.Namespace = m.GetNamespace()
		client = a.client.Resource(mapping.Resource).Namespace(key.Namespace)
	}
	before, err := a.objects.Get(ctx, key.String())
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return fail(err)
	}
	if before.Revision != storage.NoRevision && saysNothing(m) {
		// Applying it would change the managed fields, although it sets nothing.
		obj, err := client.Get(ctx, m.GetName(), metav1.GetOptions{})
		if err != nil {
			return fail(err)
		}
		return applied{Unstructured: obj, client: client, change: unchanged}, nil
	}
	obj, err := client.Apply(ctx, m.GetName(), m.Unstructured, metav1.ApplyOptions{FieldManager: manager, Force: true})
	if err != nil {
		return fail(err)
	}
	result := applied{Unstructured: obj, client: client, change: configured}
	switch {
	case before.Revision == storage.NoRevision:
		result.change = created
	case obj.GetResourceVersion() == fmt.Sprint(before.Revision):
		result.change = unchanged
	}
	return result, nil
}

// saysNothing reports whether a manifest only names an object.
func saysNothing(m manifest.Object) bool {
	metadata, ok := m.Object["metadata"].(map[string]any)
	for key := range metadata {
		if key != "name" && key != "namespace" {
			return false
		}
	}
	return ok && len(m.Object) == 3 // with apiVersion and kind
}

// refresh reads the objects again.
func refresh(ctx context.Context, all []applied) error {
	for i, o := range all {
		obj, err := o.client.Get(ctx, o.GetName(), metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("read %s %s: %w", o.GetKind(), o.GetName(), err)
		}
		all[i].Unstructured = obj
	}
	return nil
}

// notCurrent returns a line for each object that is not current. It leaves out kinds that no controller handles.
func notCurrent(all []applied, o Options) (lines []string) {
	running, _ := runningOf(o) // the selection has been checked
	for _, obj := range all {
		handled := !slices.ContainsFunc(handlers[obj.GroupVersionKind().GroupKind()],
			func(h string) bool { return !running[h] })
		if s, why := standingOf(obj.Unstructured); s != current && handled {
			lines = append(lines, fmt.Sprintf("%s %s is %s: %s", obj.GetKind(), nameOf(obj.Unstructured), s, why))
		}
	}
	return lines
}

func nameOf(o *unstructured.Unstructured) string {
	if o.GetNamespace() == "" {
		return o.GetName()
	}
	return o.GetNamespace() + "/" + o.GetName()
}
