package sliceset

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/client"
)

// Batch is what to do with some slices of one key. The order is create, update, remove, and the first failure ends it:
// an endpoint must be in its new slice before it leaves the old one. The batch owns the slices in Create and Update.
// Those in Remove belong to the cache.
type Batch struct {
	Create []*discoveryv1.EndpointSlice
	// Update has changed copies of slices in the cache.
	Update []*discoveryv1.EndpointSlice
	Remove []*discoveryv1.EndpointSlice
}

// Add appends the writes of another batch.
func (b *Batch) Add(o Batch) {
	b.Create = append(b.Create, o.Create...)
	b.Update = append(b.Update, o.Update...)
	b.Remove = append(b.Remove, o.Remove...)
}

// Recycle turns creates into updates of slices that would be removed: one write instead of two. All slices of the batch
// have one address family, which cannot be changed. usable selects the slices to recycle, and rewritten returns a copy
// of a slice with the content of another.
func (b *Batch) Recycle(usable func(*discoveryv1.EndpointSlice) bool,
	rewritten func(slice, wanted *discoveryv1.EndpointSlice) *discoveryv1.EndpointSlice,
) {
	var remove []*discoveryv1.EndpointSlice
	for _, slice := range b.Remove {
		if len(b.Create) == 0 || !usable(slice) {
			remove = append(remove, slice)
			continue
		}
		b.Update = append(b.Update, rewritten(slice, b.Create[0]))
		b.Create = b.Create[1:]
	}
	b.Remove = remove
}

// OwnedBy reports whether the slice has the object of that kind in the API's core group, and not another of the same
// name, among its owners.
//
// Source: k8s.io/endpointslice v0.37.2 utils.go, ownedBy
func OwnedBy(slice *discoveryv1.EndpointSlice, kind string, uid types.UID) bool {
	return slices.ContainsFunc(slice.OwnerReferences, func(o metav1.OwnerReference) bool {
		return o.UID == uid && o.Kind == kind && o.APIVersion == "v1"
	})
}

// NamePrefix returns the prefix of the generated names of a key's slices. It omits the dash if that would make the
// prefix invalid.
//
// Source: k8s.io/endpointslice v0.37.2 utils.go, getEndpointSlicePrefix
func NamePrefix(name string) string {
	if prefix := name + "-"; len(validation.NameIsDNSSubdomain(prefix, true)) == 0 {
		return prefix
	}
	return name
}

// Write carries out a batch, up to the first failure. It is no error if the namespace is being deleted: no retry would
// succeed.
//
// Source: k8s.io/endpointslice v0.37.2 reconciler.go, finalize
func (s *Set) Write(ctx context.Context, key types.NamespacedName, b Batch) error {
	for _, slice := range b.Create {
		err := s.client.Create(ctx, slice)
		if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			klog.FromContext(ctx).V(4).Info("Endpoint slice not created, the namespace is being deleted")
			return nil
		}
		if err != nil {
			return fmt.Errorf("failed to create EndpointSlice for %s %s: %w", s.of, key, err)
		}
		s.left.leave(key, slice.UID, slice.Generation)
	}
	for _, slice := range b.Update {
		if err := s.client.Update(ctx, slice); err != nil {
			return fmt.Errorf("failed to update %s EndpointSlice for %s %s: %w", slice.Name, s.of, key, err)
		}
		s.left.leave(key, slice.UID, slice.Generation)
	}
	for _, slice := range b.Remove {
		// The UID keeps it from deleting another slice that has taken the name.
		err := s.client.Delete(ctx, slice, client.Preconditions{UID: &slice.UID})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("failed to delete %s EndpointSlice for %s %s: %w", slice.Name, s.of, key, err)
		}
		s.left.leave(key, slice.UID, deleted)
	}
	return nil
}
