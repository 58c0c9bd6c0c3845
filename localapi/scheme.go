package localapi

import (
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	clientscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/flyball-dev/flyball/localapi/internal/codec"
	"github.com/flyball-dev/flyball/localapi/internal/resource"
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

// builtInTypes returns the type converter of the built-in types. To make it, all their schemas must be parsed, which
// takes more than a hundred milliseconds. So it is made on first use, once per process. It is immutable.
var builtInTypes = sync.OnceValue(func() managedfields.TypeConverter {
	return applyconfigurations.NewTypeConverter(clientscheme.Scheme)
})
