package localapi

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/internal/misuse"
	"github.com/flyball-dev/flyball/localapi/audit"
	"github.com/flyball-dev/flyball/localapi/internal/crd"
	"github.com/flyball-dev/flyball/localapi/internal/registry"
	"github.com/flyball-dev/flyball/localapi/internal/resource"
	"github.com/flyball-dev/flyball/localapi/storage"
)

// Audit returns the server's audit log, or nil if it has none.
func (s *Server) Audit() *audit.Log { return s.handler.Audit }

// Seed stores objects as they are, with their status, UID, finalizers and deletion timestamp, as if they had always
// existed. Seed adds what they lack (UID, creation time, defaults, namespace). It does not validate them, it keeps the
// managed fields that they bring, and it records no request.
//
// Definitions of custom resources are stored first, whatever the order, and then namespaces. An object may have any Go
// type that [Options.Scheme] knows.
func (s *Server) Seed(ctx context.Context, objects ...runtime.Object) error {
	for i, obj := range objects {
		if err := misuse.Nil(fmt.Sprintf("object %d of %d", i+1, len(objects)), obj); err != nil {
			return err
		}
	}
	inOrder := slices.Clone(objects)
	slices.SortStableFunc(inOrder, func(a, b runtime.Object) int { return s.rank(a) - s.rank(b) })
	for _, obj := range inOrder {
		r, err := s.resourceOf(obj)
		if err != nil {
			return err
		}
		if obj, err = typed(r, obj); err != nil {
			return fmt.Errorf("seed %s: %w", r.Definition.Plural, err)
		}
		m := resource.Meta(obj)
		if m.GetName() == "" {
			return fmt.Errorf("seed %s: an object has no name", r.Definition.Plural)
		}
		if err := s.ensureNamespace(r, m.GetNamespace()); err != nil {
			return err
		}
		if err := r.Seed(ctx, obj); err != nil {
			return fmt.Errorf("seed %s %s: %w", r.Definition.Plural, m.GetName(), err)
		}
	}
	return nil
}

// rank returns the position of obj among objects that are seeded together. Those that others need come first.
func (s *Server) rank(obj runtime.Object) int {
	kinds, err := s.kindsOf(obj)
	switch {
	case err == nil && kinds[0] == crd.Kind:
		return 0
	case err == nil && kinds[0] == corev1.SchemeGroupVersion.WithKind("Namespace"):
		return 1
	}
	return 2
}

// typed returns a copy of obj in the Go type that the resource is stored in. An object read from a file has no Go type
// yet, and custom resources are stored as unstructured objects whatever type their clients use.
func typed(r *registry.Resource, obj runtime.Object) (runtime.Object, error) {
	own := r.Definition.New()
	if reflect.TypeOf(own) == reflect.TypeOf(obj) {
		return obj.DeepCopyObject(), nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, err
	}
	if u, ok := own.(*unstructured.Unstructured); ok {
		u.Object = content
		return u, nil
	}
	return own, runtime.DefaultUnstructuredConverter.FromUnstructured(content, own)
}

// kindsOf returns the kinds that obj may have: the one that it states, or else those of its Go type. There is at least
// one.
func (s *Server) kindsOf(obj runtime.Object) ([]schema.GroupVersionKind, error) {
	if kind := obj.GetObjectKind().GroupVersionKind(); !kind.Empty() {
		return []schema.GroupVersionKind{kind}, nil
	}
	kinds, _, err := s.env.Codec.Scheme().ObjectKinds(obj)
	if err == nil {
		return kinds, nil
	}
	if kinds, _, err = s.scheme.ObjectKinds(obj); err != nil {
		return nil, fmt.Errorf("seed %T: %w: set its apiVersion and kind, or give the server a Scheme that knows it",
			obj, err)
	}
	return kinds, nil
}

func (s *Server) resourceOf(obj runtime.Object) (*registry.Resource, error) {
	kinds, err := s.kindsOf(obj)
	if err != nil {
		return nil, err
	}
	for _, kind := range kinds {
		if r := s.resourceOfKind(kind); r != nil {
			return r, nil
		}
	}
	return nil, fmt.Errorf("seed %T: the server does not serve %s: a custom resource needs its definition", obj,
		kinds[0])
}

func (s *Server) ensureNamespace(r *registry.Resource, name string) error {
	if !r.Definition.Namespaced || s.env.Namespaces == nil {
		return nil
	}
	name = cmp.Or(name, metav1.NamespaceDefault)
	return s.createNamespace(name)
}

// Change is one committed write.
type Change struct {
	Revision int64

	// Resource has the version that the objects are in. For a custom resource with several versions that is always the
	// same one, whichever the client used.
	Resource        schema.GroupVersionResource
	Kind            schema.GroupVersionKind
	Namespace, Name string

	// Object is the state after the write, or nil after a delete. Previous is the state before it, or nil before a
	// create. Both are read-only and lack their resource version.
	Object, Previous runtime.Object
}

// Changes returns the writes that were committed after a revision, in order and without waiting for any, and the
// revision up to which it looked, from which the next call can go on. 0 means all that the store remembers.
//
// Errors: the store is closed or has forgotten some of the writes; an object cannot be decoded.
func (s *Server) Changes(after int64) (changes []Change, revision int64, err error) {
	w, err := s.env.Store.Watch(context.Background(), storage.TenantPrefix(s.env.Tenant), after)
	if err != nil {
		return nil, after, fmt.Errorf("read the writes after %d: %w", after, err)
	}
	defer w.Close()
	events, revision, err := w.Poll()
	if err != nil {
		return nil, after, err
	}
	for i := range events {
		c, ok, err := s.change(&events[i])
		if err != nil {
			return nil, after, fmt.Errorf("write %d, to %s: %w", events[i].Revision, events[i].Key, err)
		}
		if ok {
			changes = append(changes, c)
		}
	}
	return changes, revision, nil
}

// change decodes one write. It reports false for a write to a resource that is no longer served.
func (s *Server) change(e *storage.Event) (c Change, ok bool, err error) {
	key, err := storage.ParseKey(e.Key)
	if err != nil {
		return Change{}, false, err
	}
	r := s.anyVersion(schema.GroupResource{Group: key.Group, Resource: key.Resource})
	if r == nil {
		return Change{}, false, nil
	}
	c = Change{
		Revision: e.Revision, Resource: r.Definition.GroupVersionResource(), Kind: r.Definition.GroupVersionKind(),
		Namespace: key.Namespace, Name: key.Name,
	}
	if !e.Deleted {
		if c.Object, err = r.Restore(e.Record); err != nil {
			return Change{}, false, err
		}
	}
	if e.Previous.Revision != storage.NoRevision {
		if c.Previous, err = r.Restore(e.Previous); err != nil {
			return Change{}, false, err
		}
	}
	return c, true, nil
}

// anyVersion returns one of the versions that a resource is served in, always the same one, or nil.
func (s *Server) anyVersion(gr schema.GroupResource) (found *registry.Resource) {
	for gvr, r := range s.served.Load().resources {
		if gvr.GroupResource() == gr &&
			(found == nil || gvr.Version < found.Definition.GroupVersionResource().Version) {
			found = r
		}
	}
	return found
}
