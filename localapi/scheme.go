package localapi

import (
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/flyball-dev/flyball/localapi/internal/codec"
	"github.com/flyball-dev/flyball/localapi/internal/resource"
	"github.com/flyball-dev/flyball/localapi/internal/schemas"
)

// newScheme registers the Go types of the definitions, and the kinds that every API group has.
func newScheme(definitions []*resource.Definition) (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		return nil, fmt.Errorf("register meta types: %w", err)
	}
	v1 := schema.GroupVersion{Version: "v1"}
	scheme.AddUnversionedTypes(v1, &metav1.Status{}, &metav1.APIVersions{}, &metav1.APIGroupList{}, &metav1.APIGroup{},
		&metav1.APIResourceList{})
	for _, d := range definitions {
		if codec.IsUnstructured(d.New()) {
			continue
		}
		scheme.AddKnownTypeWithName(d.GroupVersionKind(), d.New())
		if d.Review == nil {
			scheme.AddKnownTypeWithName(d.ListGroupVersionKind(), d.NewList())
		}
		for _, sub := range d.Subresources {
			if sub.New != nil {
				scheme.AddKnownTypeWithName(sub.Kind, sub.New())
			}
		}
	}
	return scheme, nil
}

var (
	builtInOnce sync.Once // guards the making of the two below
	builtIn     *runtime.Scheme
	errBuiltIn  error
)

// builtInScheme is newScheme for the definitions that servers have by default. They differ between servers in what they
// do, but have the same types, and nobody changes a server's scheme. So all servers of the process share it.
func builtInScheme(definitions []*resource.Definition) (*runtime.Scheme, error) {
	builtInOnce.Do(func() { builtIn, errBuiltIn = newScheme(definitions) })
	return builtIn, errBuiltIn
}

// builtInTypes converts the built-in types. All servers of the process share the schemas that it has parsed.
var builtInTypes = schemas.NewConverter(clientscheme.Scheme)
