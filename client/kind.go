package client

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/internal/misuse"
)

// form is how an object is represented in this process.
type form uint8

const (
	formTyped form = iota
	formUnstructured
	formMetadata
	forms // their number
)

// kind is what a Go value says about itself.
type kind struct {
	gvk  schema.GroupVersionKind
	form form
}

// errNoObject: there is nothing to read into, or to write.
var errNoObject = errors.New("the object is nil: give a pointer to one, like &corev1.Pod{}")

// kindOf finds the kind of an object, or of the elements of a list.
func kindOf(scheme *runtime.Scheme, obj runtime.Object) (kind, error) {
	if misuse.IsNil(obj) {
		return kind{}, errNoObject
	}
	k := kind{gvk: obj.GetObjectKind().GroupVersionKind()}
	switch obj.(type) {
	case *unstructured.Unstructured, *unstructured.UnstructuredList:
		k.form = formUnstructured
	case *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList:
		k.form = formMetadata
	default:
		if scheme == nil {
			return k, fmt.Errorf(
				"the scheme, which tells the kind of %T, is nil: give the one of the client, Scheme()", obj,
			)
		}
		kinds, _, err := scheme.ObjectKinds(obj)
		if err != nil {
			return k, err
		}
		k.gvk = kinds[0]
	}
	if _, list := obj.(metav1.ListInterface); list {
		k.gvk.Kind = strings.TrimSuffix(k.gvk.Kind, "List")
	}
	if k.gvk.Kind == "" || k.gvk.Version == "" {
		return k, fmt.Errorf("%T says no kind: set apiVersion and kind", obj)
	}
	return k, nil
}

// make returns a new, empty object of the kind.
func (k kind) make(scheme *runtime.Scheme) (Object, error) {
	var obj Object
	switch k.form {
	case formUnstructured:
		obj = &unstructured.Unstructured{}
	case formMetadata:
		obj = &metav1.PartialObjectMetadata{}
	default:
		made, err := scheme.New(k.gvk)
		if err != nil {
			return nil, err
		}
		typed, ok := made.(Object)
		if !ok {
			return nil, fmt.Errorf("%T has no object metadata", made)
		}
		obj = typed
	}
	obj.GetObjectKind().SetGroupVersionKind(k.gvk)
	return obj, nil
}

// mapper finds the resources of kinds, and remembers them.
type mapper struct {
	given  meta.RESTMapper // nil asks the server
	client rest.Interface

	mu    sync.Mutex
	known map[schema.GroupVersionKind]resource
}

// resource is where objects of a kind are found.
type resource struct {
	schema.GroupVersionResource
	namespaced bool
}

// resourceOf asks the server about one group and version, not the whole of discovery. Failures are not remembered: a
// custom resource may be defined at any time.
func (m *mapper) resourceOf(ctx context.Context, gvk schema.GroupVersionKind) (resource, error) {
	m.mu.Lock()
	r, known := m.known[gvk]
	m.mu.Unlock()
	if known {
		return r, nil
	}
	found, err := m.discover(ctx, gvk)
	if err != nil {
		return resource{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for kind, r := range found {
		m.known[kind] = r
	}
	if r, known = found[gvk]; !known {
		return resource{},
			&listwatch.UnknownKindError{Kind: gvk, Err: errors.New("not in the list of the version's resources")}
	}
	return r, nil
}

func (m *mapper) discover(ctx context.Context,
	gvk schema.GroupVersionKind,
) (map[schema.GroupVersionKind]resource, error) {
	if m.given != nil {
		mapping, err := m.given.RESTMapping(gvk.GroupKind(), gvk.Version)
		if err != nil {
			return nil, fmt.Errorf("find the resource of %s: %w", gvk, err)
		}
		return map[schema.GroupVersionKind]resource{
			gvk: {mapping.Resource, mapping.Scope.Name() == meta.RESTScopeNameNamespace},
		}, nil
	}
	_, data, err := answer(ctx, m.client.Get().AbsPath(apiPath(gvk.GroupVersion())), url.Values{})
	if err != nil {
		return nil, fmt.Errorf("find the resource of %s: %w", gvk, err)
	}
	var list metav1.APIResourceList
	if err := decode(data, &list); err != nil {
		return nil, fmt.Errorf("find the resource of %s: %w", gvk, err)
	}
	found := map[schema.GroupVersionKind]resource{}
	for _, r := range list.APIResources {
		if !strings.Contains(r.Name, "/") {
			found[gvk.GroupVersion().WithKind(r.Kind)] = resource{gvk.GroupVersion().WithResource(r.Name), r.Namespaced}
		}
	}
	return found, nil
}

// apiPath is where the resources of a version are.
func apiPath(gv schema.GroupVersion) string {
	if gv.Group == "" {
		return "/api/" + gv.Version
	}
	return "/apis/" + gv.String()
}
