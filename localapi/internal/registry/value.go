package registry

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// maxStored bounds the size of a stored object, in bytes. It is the default limit of etcd for one request.
//
// Source: go.etcd.io/etcd server/embed DefaultMaxRequestBytes.
const maxStored = 3 << 19

// value returns obj, whose metadata is m, as it will be written to the store. If an object is too large with its
// managed fields, it drops them, unless the write is about them. Errors: RequestEntityTooLarge.
//
// Source: k8s.io/apiserver v0.37.2 pkg/endpoints/handlers/create.go isTooLargeError.
func (r *Resource) value(ctx context.Context, obj runtime.Object, m metav1.Object, o WriteOptions) ([]byte, error) {
	value, err := r.encode(ctx, obj)
	if r.Definition.Convert != nil && err != nil {
		return nil, err // as the real server words it
	}
	if err != nil {
		return nil, fmt.Errorf("encode %s %q: %w", r.Definition.Kind, m.GetName(), err)
	}
	if o.DryRun || len(value) <= maxStored {
		return value, nil
	}
	if len(m.GetManagedFields()) > 0 && !o.Apply {
		m.SetManagedFields(nil)
		return r.value(ctx, obj, m, o)
	}
	return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("%s %q has %d bytes as it is stored: the limit "+
		"is %d", r.Definition.Kind, m.GetName(), len(value), maxStored))
}
