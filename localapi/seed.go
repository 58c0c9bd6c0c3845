package localapi

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/localapi/audit"
	"github.com/flyball-dev/flyball/localapi/internal/registry"
)

// Audit is the server's audit log; nil if it has none.
func (s *Server) Audit() *audit.Log { return s.handler.Audit }

// Seed stores objects as they are, as if they had been there all along: with the status, UID, finalizers and deletion
// timestamp they have. What they lack (UID, creation time, defaults, their namespace) they get. They are not validated,
// their managed fields are what they bring, and no request is recorded.
func (s *Server) Seed(ctx context.Context, objects ...runtime.Object) error {
	for _, obj := range objects {
		r, err := s.resourceOf(obj)
		if err != nil {
			return err
		}
		m, err := meta.Accessor(obj)
		if err != nil {
			return fmt.Errorf("seed %T: %w", obj, err)
		}
		if err := s.ensureNamespace(r, m.GetNamespace()); err != nil {
			return err
		}
		if obj, err = typed(r, obj); err != nil {
			return fmt.Errorf("seed %s %s: %w", r.Definition.Plural, m.GetName(), err)
		}
		if err := r.Seed(ctx, obj); err != nil {
			return fmt.Errorf("seed %s %s: %w", r.Definition.Plural, m.GetName(), err)
		}
	}
	return nil
}

// typed is a copy of obj in the Go type that the resource is stored in. What was read from a file is unstructured.
func typed(r *registry.Resource, obj runtime.Object) (runtime.Object, error) {
	own := r.Definition.New()
	u, ok := obj.(*unstructured.Unstructured)
	if _, same := own.(*unstructured.Unstructured); !ok || same {
		return obj.DeepCopyObject(), nil
	}
	return own, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, own)
}

// resourceOf finds the resource that objects of obj's type belong to.
func (s *Server) resourceOf(obj runtime.Object) (*registry.Resource, error) {
	kind := obj.GetObjectKind().GroupVersionKind()
	if kind.Empty() {
		kinds, _, err := s.env.Codec.Scheme().ObjectKinds(obj)
		if err != nil {
			return nil, fmt.Errorf("seed %T: %w", obj, err)
		}
		kind = kinds[0]
	}
	if r := s.resourceOfKind(kind); r != nil {
		return r, nil
	}
	return nil, fmt.Errorf("seed %T: the server does not serve %s", obj, kind)
}

func (s *Server) ensureNamespace(r *registry.Resource, name string) error {
	if !r.Definition.Namespaced || s.env.Namespaces == nil {
		return nil
	}
	if name == "" {
		name = metav1.NamespaceDefault
	}
	return s.createNamespace(name)
}
