package localapi

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/localapi/internal/conversion"
	"github.com/flyball-dev/flyball/localapi/internal/crd"
	"github.com/flyball-dev/flyball/localapi/internal/customresource"
	"github.com/flyball-dev/flyball/localapi/internal/expressions"
	"github.com/flyball-dev/flyball/localapi/internal/registry"
	"github.com/flyball-dev/flyball/localapi/internal/watchcache"
)

// customTypes makes a server serve what its CustomResourceDefinitions define.
//
// In a kube-apiserver, controllers do this some time after a definition was written. Here the request that writes the
// definition does it before it is answered, so a client that has created a definition can use it at once, and no
// goroutine is needed. The writes to the definition's status are the same as upstream's, so watchers see the same
// history.
type customTypes struct {
	server      *Server
	definitions *registry.Resource
	fixed       *catalog              // the types that are always served
	cel         expressions.Evaluator // nil: rules are not evaluated

	mu     sync.Mutex
	served map[string]*servedType // by the definition's name
}

// servedType is what the server made of one definition.
type servedType struct {
	definition *apiextensionsv1.CustomResourceDefinition // as it was when the resources were made
	resources  []*registry.Resource                      // one for each served version
}

func newCustomTypes(s *Server, definitions *registry.Resource, fixed *catalog) *customTypes {
	c := &customTypes{server: s, definitions: definitions, fixed: fixed, served: map[string]*servedType{}}
	definitions.Changed = func(ctx context.Context, o *watchcache.Object, _ bool) { c.settle(ctx, o.Meta.GetName()) }
	return c
}

// loadCustomTypes makes the server serve what the definitions in the storage define.
func (s *Server) loadCustomTypes() error {
	if s.custom == nil {
		return nil
	}
	all, err := s.custom.list()
	if err != nil {
		return err
	}
	for _, d := range all {
		s.custom.settle(context.Background(), d.Name)
	}
	return nil
}

// settling marks the contexts of writes that settle itself causes.
type settling struct{}

// settle follows up a change of a definition, or of objects that the definition's deletion waits for. The write that
// caused the change is already done, so settle only logs a failure. The next write tries again.
func (c *customTypes) settle(ctx context.Context, name string) {
	if ctx.Value(settling{}) != nil {
		return // the settle that caused this write continues with it
	}
	ctx = context.WithValue(context.WithoutCancel(ctx), settling{}, true)
	c.mu.Lock()
	defer c.mu.Unlock()
	names := []string{name}
	for done := map[string]bool{}; len(names) > 0; names = names[1:] {
		if done[names[0]] {
			continue
		}
		done[names[0]] = true
		released, err := c.settleLocked(ctx, names[0])
		if err != nil {
			klog.FromContext(ctx).Error(err, "Definition of a custom resource was not put into effect",
				"definition", names[0])
		}
		names = append(names, released...)
	}
	if !c.server.registers {
		return
	}
	if err := c.server.registerVersions(ctx); err != nil {
		klog.FromContext(ctx).Error(err, "APIServices of custom resources were not updated", "definition", name)
	}
}

// settleLocked settles one definition. It returns the other definitions that may now get names that were taken before.
func (c *customTypes) settleLocked(ctx context.Context, name string) (others []string, err error) {
	o, err := c.definitions.Get(ctx, "", name, "")
	if apierrors.IsNotFound(err) {
		return c.withdrawLocked(name)
	}
	if err != nil {
		return nil, err
	}
	definition := o.Object.(*apiextensionsv1.CustomResourceDefinition)
	if crd.ToClean(definition) {
		if err := c.cleanLocked(ctx, definition); err != nil {
			return nil, err
		}
		if _, err := c.definitions.Get(ctx, "", name, ""); apierrors.IsNotFound(err) {
			return c.withdrawLocked(name)
		}
		return nil, nil
	}
	all, err := c.list()
	if err != nil {
		return nil, err
	}
	accept := func(d *apiextensionsv1.CustomResourceDefinition) (*apiextensionsv1.CustomResourceDefinition, bool) {
		return crd.Accept(d, all)
	}
	if definition, err = c.updateStatus(ctx, definition, accept); err != nil {
		return nil, err
	}
	if definition, err = c.updateStatus(ctx, definition, crd.Establish); err != nil {
		return nil, err
	}
	return nil, c.serveLocked(definition)
}

// list returns all definitions, sorted by name.
func (c *customTypes) list() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	result, err := c.definitions.List(context.Background(), registry.ListOptions{})
	if err != nil {
		return nil, err
	}
	var all []*apiextensionsv1.CustomResourceDefinition
	for _, o := range result.Objects {
		all = append(all, o.Object.(*apiextensionsv1.CustomResourceDefinition))
	}
	return all, nil
}

// controllerManager is the field manager of writes that controllers do in a kube-apiserver.
const controllerManager = "kube-apiserver"

// updateStatus writes what change returns for d, if change reports that it differs from d.
func (c *customTypes) updateStatus(
	ctx context.Context, d *apiextensionsv1.CustomResourceDefinition,
	change func(*apiextensionsv1.CustomResourceDefinition) (*apiextensionsv1.CustomResourceDefinition, bool),
) (*apiextensionsv1.CustomResourceDefinition, error) {
	if _, changed := change(d); !changed {
		return d, nil
	}
	r := c.definitions
	o := registry.WriteOptions{Manager: controllerManager, Warn: func(string) {}}
	updated, _, err := r.Update(ctx, "", d.Name,
		registry.Change{Part: registry.Status, WriteOptions: o, Next: func(old runtime.Object) (runtime.Object, error) {
			next, _ := change(old.(*apiextensionsv1.CustomResourceDefinition))
			return c.server.env.Managers.Update(ctx, r.Written("status"), old, next.DeepCopy(), o.Manager)
		}})
	if err != nil {
		return nil, fmt.Errorf("update status: %w", err)
	}
	return updated.Object.(*apiextensionsv1.CustomResourceDefinition), nil
}

// serveLocked makes the server serve d in its present state.
func (c *customTypes) serveLocked(d *apiextensionsv1.CustomResourceDefinition) error {
	before := c.served[d.Name]
	if !crd.Served(d) {
		return nil
	}
	if before != nil && before.definition.UID == d.UID && sameService(before.definition, d) {
		return nil
	}
	definitions, err := customresource.Definitions(d, c.cel)
	if err != nil {
		return err
	}
	t := &servedType{definition: d}
	webhook := conversion.Of(d, &c.server.webhooks.clients)
	for _, definition := range definitions {
		if webhook != nil {
			definition.Convert = webhook.Convert
		}
		r := registry.NewResource(c.server.env, definition)
		r.Changed = func(ctx context.Context, _ *watchcache.Object, removed bool) {
			c.wake(d)
			if removed && definition.Terminating {
				c.settle(ctx, d.Name)
			}
		}
		t.resources = append(t.resources, r)
	}
	c.served[d.Name] = t
	c.publishLocked()
	if before != nil {
		before.retire()
	}
	return nil
}

// wake lets the watchers of all versions of d's type see a write to one of them.
func (c *customTypes) wake(d *apiextensionsv1.CustomResourceDefinition) {
	served := c.server.served.Load()
	for _, v := range d.Spec.Versions {
		gvr := schema.GroupVersionResource{
			Group: d.Spec.Group, Version: v.Name,
			Resource: d.Status.AcceptedNames.Plural,
		}
		if r := served.resources[gvr]; r != nil {
			_ = r.Objects.Sync() // readers get the error themselves
		}
	}
}

// sameService reports whether the server serves the same for both states of a definition.
func sameService(a, b *apiextensionsv1.CustomResourceDefinition) bool {
	return crd.Terminating(a) == crd.Terminating(b) && equality.Semantic.DeepEqual(a.Spec, b.Spec) &&
		equality.Semantic.DeepEqual(a.Status.AcceptedNames, b.Status.AcceptedNames)
}

func (t *servedType) retire() {
	for _, r := range t.resources {
		r.Retire()
	}
}

func (c *customTypes) publishLocked() {
	var all []*registry.Resource
	for _, name := range slices.Sorted(maps.Keys(c.served)) {
		all = append(all, c.served[name].resources...)
	}
	c.server.served.Store(c.fixed.with(all))
}

// withdrawLocked stops serving a definition that is gone. It returns the other definitions of the group, which may now
// use its names.
func (c *customTypes) withdrawLocked(name string) (others []string, err error) {
	t := c.served[name]
	if t == nil {
		return nil, nil
	}
	delete(c.served, name)
	c.publishLocked()
	t.retire()
	all, err := c.list()
	for _, d := range all {
		if d.Spec.Group == t.definition.Spec.Group {
			others = append(others, d.Name)
		}
	}
	return others, err
}

// cleanLocked deletes the objects of a definition that is being deleted. When none are left it removes the definition's
// finalizer. Otherwise the deletion of the last object calls it again.
func (c *customTypes) cleanLocked(ctx context.Context, d *apiextensionsv1.CustomResourceDefinition) error {
	d, err := c.updateStatus(ctx, d, crd.Cleaning)
	if err != nil {
		return err
	}
	if err := c.serveLocked(d); err != nil {
		return err
	}
	if t := c.served[d.Name]; t != nil && len(t.resources) > 0 {
		// All versions share their objects. Nothing is converted: c.mu must not be held while a webhook works, and a
		// definition can be deleted without its webhook.
		r := t.resources[0].AsStored()
		if _, err := r.DeleteCollection(ctx, metav1.DeleteOptions{}, registry.ListOptions{}, nil); err != nil {
			return fmt.Errorf("delete objects: %w", err)
		}
		left, err := r.List(ctx, registry.ListOptions{Limit: 1})
		if err != nil || len(left.Objects) > 0 {
			return err
		}
	}
	_, err = c.updateStatus(ctx, d, crd.Cleaned)
	return err
}
