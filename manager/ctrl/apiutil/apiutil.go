// Package apiutil finds out about kinds, by the names of controller-runtime.
//
// Source: controller-runtime v0.25.2 pkg/client/apiutil.
package apiutil

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GVKForObject returns the kind of an object. A type that is registered for several kinds has the one that its TypeMeta
// has.
func GVKForObject(obj runtime.Object, scheme *runtime.Scheme) (schema.GroupVersionKind, error) {
	told := obj.GetObjectKind().GroupVersionKind()
	switch obj.(type) {
	case *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList:
		if told.Kind == "" || told.Version == "" {
			return schema.GroupVersionKind{}, fmt.Errorf("%T has no kind: set apiVersion and kind", obj)
		}
		return told, nil
	}
	kinds, unversioned, err := scheme.ObjectKinds(obj)
	switch {
	case err != nil:
		return schema.GroupVersionKind{}, err
	case unversioned:
		return schema.GroupVersionKind{}, fmt.Errorf("%T belongs to no group and version", obj)
	case len(kinds) == 1:
		return kinds[0], nil
	case slices.Contains(kinds, told):
		return told, nil
	}
	return schema.GroupVersionKind{}, fmt.Errorf("%T is registered for several kinds: set apiVersion and kind: %v",
		obj, kinds)
}

// IsObjectNamespaced reports whether objects of the kind of obj have a namespace.
func IsObjectNamespaced(obj runtime.Object, scheme *runtime.Scheme, mapper meta.RESTMapper) (bool, error) {
	kind, err := GVKForObject(obj, scheme)
	if err != nil {
		return false, err
	}
	return IsGVKNamespaced(kind, mapper)
}

// IsGVKNamespaced reports whether objects of the kind have a namespace.
func IsGVKNamespaced(kind schema.GroupVersionKind, mapper meta.RESTMapper) (bool, error) {
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return false, err
	}
	return mapping.Scope.Name() != meta.RESTScopeNameRoot, nil
}
