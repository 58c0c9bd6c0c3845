package garbagecollector

import (
	"context"
	"errors"
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/util/retry"
)

// unresolvedError means that the API server cannot be asked whether an object exists. A retry helps only after
// something else has changed.
type unresolvedError struct {
	why string
	// kind is the kind that the server does not serve in any version; zero if the reason is another one.
	kind schema.GroupKind
}

func (e *unresolvedError) Error() string { return e.why }

// errNoNamespace means that a cluster-scoped object names an owner of a namespaced kind, so the owner's namespace is
// not known.
var errNoNamespace = &unresolvedError{why: "a cluster-scoped object names an owner of a namespaced kind"}

func errNotServed(kind schema.GroupKind) error {
	return &unresolvedError{why: "the API server serves no version of the kind " + kind.String(), kind: kind}
}

// remote reads and writes the metadata of objects of any kind.
type remote struct {
	client metadata.Interface
	mapper meta.RESTMapper
}

// resource returns the client for objects of the kind in the namespace, and reports whether the kind is namespaced. It
// ignores the namespace if the kind is cluster-scoped.
//
// Errors: an unresolvedError.
func (r *remote) resource(kind schema.GroupKind, namespace string) (metadata.ResourceInterface, bool, error) {
	mapping, err := r.mapper.RESTMapping(kind)
	if meta.IsNoMatchError(err) {
		return nil, false, errNotServed(kind)
	}
	if err != nil {
		return nil, false, fmt.Errorf("find the resource of %s: %w", kind, err)
	}
	client := r.client.Resource(mapping.Resource)
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		return served{client, kind}, false, nil
	}
	return served{client.Namespace(namespace), kind}, true, nil
}

// served distinguishes two meanings of the code 404: the object does not exist, or the server does not serve the
// version any more. The second occurs after a CustomResourceDefinition has changed, until the next discovery.
type served struct {
	metadata.ResourceInterface
	kind schema.GroupKind
}

func (s served) check(err error) error {
	status := apierrors.APIStatus(nil)
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return err
	}
	details, unexpected := status.Status().Details, metav1.CauseTypeUnexpectedServerResponse
	if details == nil || details.Name == "" || apierrors.HasStatusCause(err, unexpected) {
		return errNotServed(s.kind)
	}
	return err
}

func (s served) Get(ctx context.Context, name string, o metav1.GetOptions, subresources ...string,
) (*metav1.PartialObjectMetadata, error) {
	obj, err := s.ResourceInterface.Get(ctx, name, o, subresources...)
	return obj, s.check(err)
}

func (s served) Delete(ctx context.Context, name string, o metav1.DeleteOptions, subresources ...string) error {
	return s.check(s.ResourceInterface.Delete(ctx, name, o, subresources...))
}

func (s served) Patch(ctx context.Context, name string, kind types.PatchType, data []byte, o metav1.PatchOptions,
	subresources ...string,
) (*metav1.PartialObjectMetadata, error) {
	obj, err := s.ResourceInterface.Patch(ctx, name, kind, data, o, subresources...)
	return obj, s.check(err)
}

// get reads the object of that name, whatever its UID.
//
// Errors: an unresolvedError; NotFound.
func (r *remote) get(ctx context.Context, id identity) (*metav1.PartialObjectMetadata, error) {
	client, namespaced, err := r.resource(id.kind, id.namespace)
	if err != nil {
		return nil, err
	}
	if namespaced && id.namespace == "" {
		return nil, errNoNamespace
	}
	return client.Get(ctx, id.name, metav1.GetOptions{})
}

// remove deletes the object unless its owner references have changed since latest was read. It tolerates other changes,
// because it could otherwise never delete an object that is written all the time.
//
// Errors: NotFound; Conflict if the owner references have changed.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/garbagecollector/operations.go, deleteObject
func (r *remote) remove(ctx context.Context, id identity, latest *metav1.PartialObjectMetadata,
	policy *metav1.DeletionPropagation,
) error {
	client, _, err := r.resource(id.kind, id.namespace)
	if err != nil {
		return err
	}
	bound := metav1.Preconditions{UID: &id.uid, ResourceVersion: &latest.ResourceVersion}
	err = client.Delete(ctx, id.name, metav1.DeleteOptions{PropagationPolicy: policy, Preconditions: &bound})
	if !apierrors.IsConflict(err) {
		return err
	}
	now, getErr := client.Get(ctx, id.name, metav1.GetOptions{})
	if apierrors.IsNotFound(getErr) {
		return getErr
	}
	if getErr != nil || now.UID != id.uid || now.ResourceVersion == latest.ResourceVersion ||
		!apiequality.Semantic.DeepEqual(now.OwnerReferences, latest.OwnerReferences) {
		return err
	}
	return client.Delete(ctx, id.name,
		metav1.DeleteOptions{PropagationPolicy: policy, Preconditions: &metav1.Preconditions{UID: &id.uid}})
}

// disown removes references to owners from an object.
func (r *remote) disown(ctx context.Context, id identity, owners ...types.UID) error {
	strategic, err := strategicDisown(id.uid, owners)
	if err != nil {
		return err
	}
	_, err = r.patch(ctx, id, strategic,
		func(latest *metav1.PartialObjectMetadata) ([]byte, error) { return mergeDisown(latest, owners) })
	return err
}

// unblock clears blockOwnerDeletion in an object's references, and returns the patched object.
func (r *remote) unblock(ctx context.Context, id identity,
	latest *metav1.PartialObjectMetadata,
) (*metav1.PartialObjectMetadata, error) {
	strategic, err := strategicUnblock(latest)
	if err != nil {
		return nil, err
	}
	return r.patch(ctx, id, strategic, mergeUnblock)
}

// patch sends the strategic merge patch. If the resource does not support those, it sends the merge patch that merge
// makes of the latest state.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/garbagecollector/patch.go, patch
func (r *remote) patch(ctx context.Context, id identity, strategic []byte,
	merge func(*metav1.PartialObjectMetadata) ([]byte, error),
) (patched *metav1.PartialObjectMetadata, err error) {
	client, _, err := r.resource(id.kind, id.namespace)
	if err != nil {
		return nil, err
	}
	patched, err = client.Patch(ctx, id.name, types.StrategicMergePatchType, strategic, metav1.PatchOptions{})
	if !apierrors.IsUnsupportedMediaType(err) {
		return patched, err
	}
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		latest, err := client.Get(ctx, id.name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if latest.UID != id.uid {
			return apierrors.NewNotFound(schema.GroupResource{Group: id.kind.Group, Resource: id.kind.Kind}, id.name)
		}
		body, err := merge(latest)
		if err != nil {
			return err
		}
		patched, err = client.Patch(ctx, id.name, types.MergePatchType, body, metav1.PatchOptions{})
		return err
	})
	return patched, err
}

// removeFinalizer removes a finalizer from an object. It is no error if the object is gone or does not have the
// finalizer.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/garbagecollector/operations.go, removeFinalizer
func (r *remote) removeFinalizer(ctx context.Context, id identity, finalizer string) error {
	client, _, err := r.resource(id.kind, id.namespace)
	if err != nil {
		return err
	}
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		latest, err := client.Get(ctx, id.name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if latest.UID != id.uid || !hasFinalizer(latest, finalizer) {
			return nil
		}
		body, err := finalizerPatch(latest, finalizer)
		if err != nil {
			return err
		}
		_, err = client.Patch(ctx, id.name, types.MergePatchType, body, metav1.PatchOptions{})
		return err
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
