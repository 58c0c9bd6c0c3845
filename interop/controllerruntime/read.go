package controllerruntime

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	own "github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/internal/closed"
)

// readable returns the entry of a kind, for reading.
func (c *Cache) readable(obj runtime.Object) (*entry, error) {
	k, err := c.kindOf(obj)
	if err != nil {
		return nil, err
	}
	if c.settings.o.ReaderFailOnMissingInformer {
		c.mu.Lock()
		missing := c.entries[k] == nil
		c.mu.Unlock()
		if missing {
			return nil, &cache.ErrResourceNotCached{GVK: k.gvk}
		}
	}
	e, err := c.of(k)
	if err != nil {
		return nil, err
	}
	if !closed.Is(c.begun) {
		return nil, &cache.ErrCacheNotStarted{}
	}
	return e, nil
}

// synced returns the entry of a kind once it has synced.
func (c *Cache) synced(ctx context.Context, obj runtime.Object) (*entry, error) {
	e, err := c.readable(obj)
	if err != nil {
		return nil, err
	}
	return e, e.waitForSync(ctx)
}

// Get reads one object.
func (c *Cache) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	var o client.GetOptions
	o.ApplyOptions(opts)
	e, err := c.synced(ctx, obj)
	if err != nil {
		return err
	}
	if !e.namespaced {
		key.Namespace = ""
	}
	p := e.partOf(key.Namespace)
	if p == nil {
		return fmt.Errorf("unable to get: %v because of unknown namespace for the cache", key)
	}
	found, ok := p.Get(key.Namespace, key.Name)
	if !ok {
		return e.notFound(key.Name)
	}
	return hand(e, found, obj, p.shares() || isTrue(o.UnsafeDisableDeepCopy))
}

// notFound returns the error for a missing object.
//
// Source: controller-runtime v0.25.2 pkg/cache/internal/cache_reader.go: the kind stands for the resource.
func (e *entry) notFound(name string) error {
	return apierrors.NewNotFound(schema.GroupResource{Group: e.kind.gvk.Group, Resource: e.kind.gvk.Kind}, name)
}

// partOf returns the part that holds a namespace, or that would if a field selector did not exclude the namespace. It
// returns nil if there is none.
func (e *entry) partOf(namespace string) *part {
	var rest *part
	for i := range e.parts {
		switch p := &e.parts[i]; {
		case slices.Contains(p.namespaces, namespace) || !e.namespaced:
			return p
		case p.namespaces == nil || p.narrowed:
			rest = p
		}
	}
	return rest
}

// hand copies an object into the caller's, deeply unless the options say otherwise.
func hand(e *entry, found, obj client.Object, share bool) error {
	from, to := reflect.ValueOf(found), reflect.ValueOf(obj)
	if !from.Type().AssignableTo(to.Type()) {
		return fmt.Errorf("cache had type %s, but %s was asked for", from.Type(), to.Type())
	}
	if !share {
		from = reflect.ValueOf(found.DeepCopyObject())
	}
	to.Elem().Set(from.Elem())
	if !share {
		obj.GetObjectKind().SetGroupVersionKind(e.kind.gvk)
	}
	return nil
}

func isTrue(b *bool) bool { return b != nil && *b }

// continueNotSupported is the continue token of every list, as in controller-runtime: a caller that pages through a
// cache gets an error.
const continueNotSupported = "continue-not-supported"

// List reads the objects that the options select.
func (c *Cache) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(opts)
	if o.Continue != "" {
		return errors.New("continue list option is not supported by the cache")
	}
	e, err := c.synced(ctx, list)
	if err != nil {
		return err
	}
	parts := e.parts
	if o.Namespace != metav1.NamespaceAll && e.namespaced {
		p := e.partOf(o.Namespace)
		if p == nil {
			return fmt.Errorf("unable to list: %v because of unknown namespace for the cache", o.Namespace)
		}
		parts = []part{*p}
	}
	var items []runtime.Object
	for i := range parts {
		found, err := e.find(&parts[i], &o)
		if err != nil {
			return err
		}
		for _, obj := range found {
			if o.Limit > 0 && int64(len(items)) >= o.Limit {
				break
			}
			if parts[i].shares() || isTrue(o.UnsafeDisableDeepCopy) {
				items = append(items, obj)
				continue
			}
			mine := obj.DeepCopyObject()
			mine.GetObjectKind().SetGroupVersionKind(e.kind.gvk)
			items = append(items, mine)
		}
	}
	if err := meta.SetList(list, items); err != nil {
		return err
	}
	list.SetContinue(continueNotSupported)
	return nil
}

// find reads the objects of one part that the options select.
func (e *entry) find(p *part, o *client.ListOptions) ([]own.Object, error) {
	if o.FieldSelector == nil {
		return p.List(o.Namespace, o.LabelSelector), nil
	}
	wanted, err := e.indexed(o.FieldSelector)
	if err != nil {
		return nil, err
	}
	found, err := p.ByIndex(wanted[0].Field, wanted[0].Value)
	if err != nil {
		return nil, err
	}
	for _, r := range wanted[1:] {
		index := e.index(r.Field)
		found = slices.DeleteFunc(found, func(obj own.Object) bool { return !slices.Contains(index(obj), r.Value) })
	}
	return slices.DeleteFunc(found, func(obj own.Object) bool {
		return (o.Namespace != "" && obj.GetNamespace() != o.Namespace) ||
			(o.LabelSelector != nil && !o.LabelSelector.Matches(labels.Set(obj.GetLabels())))
	}), nil
}

// exact returns the requirements of a selector that only requires values, and at least one.
//
// Source: controller-runtime v0.25.2 pkg/internal/field/selector/utils.go, RequiresExactMatch.
func exact(s fields.Selector) (fields.Requirements, error) {
	wanted := s.Requirements()
	inexact := func(r fields.Requirement) bool {
		return r.Operator != selection.Equals && r.Operator != selection.DoubleEquals
	}
	if len(wanted) == 0 || slices.ContainsFunc(wanted, inexact) {
		return nil, errors.New("non-exact field matches are not supported by the cache")
	}
	return wanted, nil
}

// indexed is exact for a selector whose fields all have an index, including built-in ones such as the name.
func (e *entry) indexed(s fields.Selector) (fields.Requirements, error) {
	wanted, err := exact(s)
	for _, r := range wanted {
		if e.index(r.Field) == nil {
			return nil, fmt.Errorf("index with name field:%s does not exist", r.Field)
		}
	}
	return wanted, err
}

func (e *entry) index(field string) client.IndexerFunc {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.indexes[field]
}

// IndexField makes lists of obj's kind selectable by a field.
func (c *Cache) IndexField(ctx context.Context, obj client.Object, field string, extract client.IndexerFunc) error {
	k, err := c.kindOf(obj)
	if err != nil {
		return err
	}
	e, err := c.of(k)
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.indexes[field] != nil {
		return fmt.Errorf("indexer conflict: field:%s of %s", field, k.gvk.Kind)
	}
	if len(e.parts) == 1 { // The client reads this part, too, by the same index.
		if err = c.cluster.Cache(ctx, obj); err == nil {
			err = c.cluster.IndexField(ctx, obj, field, func(obj own.Object) []string { return extract(obj) })
		}
	} else {
		for _, p := range e.parts {
			err = errors.Join(err,
				p.AddIndex(field, func(obj own.Object) ([]string, error) { return extract(obj), nil }))
		}
	}
	if err == nil {
		e.indexes[field] = extract
	}
	return err
}
