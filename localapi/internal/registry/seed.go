package registry

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/localapi/storage"
)

// Seed stores obj as it is, and adds only what every stored object has. It takes ownership of obj. It neither validates
// nor allocates: before the first allocation for a client, the allocations of all stored objects are read.
func (r *Resource) Seed(ctx context.Context, obj runtime.Object) error {
	m, err := meta.Accessor(obj)
	if err != nil {
		return err
	}
	obj.GetObjectKind().SetGroupVersionKind(r.Definition.GroupVersionKind())
	if r.Definition.Default != nil {
		r.Definition.Default(obj)
	}
	switch {
	case !r.Definition.Namespaced:
		m.SetNamespace("")
	case m.GetNamespace() == "":
		m.SetNamespace(metav1.NamespaceDefault)
	}
	if m.GetName() == "" && m.GetGenerateName() != "" {
		m.SetName(r.generateName(m.GetGenerateName()))
	}
	if m.GetUID() == "" {
		m.SetUID(r.env.UID())
	}
	if t := m.GetCreationTimestamp(); t.IsZero() {
		m.SetCreationTimestamp(now())
	}
	m.SetResourceVersion("")
	if errs := pathSegment(m); len(errs) > 0 {
		return r.invalid(m.GetName(), errs)
	}
	value, err := r.encode(ctx, obj)
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	key := r.key(m.GetNamespace(), m.GetName()).String()
	if _, err = r.put(ctx, storage.Record{Key: key}, obj, value); errors.Is(err, storage.ErrConflict) {
		return r.alreadyExists(key, m.GetName())
	}
	return err
}
