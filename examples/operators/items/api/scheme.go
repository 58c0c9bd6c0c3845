package api

import (
	"embed"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/flyball-dev/flyball/client/manifest"
)

// GroupVersion is the group and version of the kinds in this package.
var GroupVersion = schema.GroupVersion{Group: "stock.flyball.dev", Version: "v1"}

// NewScheme returns a scheme with these kinds and Kubernetes' own.
func NewScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	if err := clientscheme.AddToScheme(scheme); err != nil {
		panic(err) // fails only if two of Kubernetes' own kinds collide
	}
	scheme.AddKnownTypes(GroupVersion, &Item{}, &ItemList{}, &Category{}, &CategoryList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return scheme
}

//go:embed crds/*_*.yaml
var crds embed.FS

// CRDs returns the definitions of the resources.
func CRDs() ([]manifest.Object, error) { return manifest.ReadFS(crds, "crds/*") }
