package api

import (
	"embed"
	"fmt"
	"io/fs"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// GroupVersion is that of the kinds here.
var GroupVersion = schema.GroupVersion{Group: "stock.flyball.dev", Version: "v1"}

// NewScheme returns a scheme that knows these kinds and Kubernetes' own.
func NewScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	if err := clientscheme.AddToScheme(scheme); err != nil {
		panic(err) // only if two of Kubernetes' own kinds collide
	}
	scheme.AddKnownTypes(GroupVersion, &Item{}, &ItemList{}, &Category{}, &CategoryList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return scheme
}

//go:embed crds/*.yaml
var crds embed.FS

// CRDs returns the definitions of the resources.
func CRDs() ([]*unstructured.Unstructured, error) {
	files, err := fs.Glob(crds, "crds/*.yaml")
	if err != nil {
		return nil, err
	}
	var out []*unstructured.Unstructured
	for _, file := range files {
		text, err := crds.ReadFile(file)
		if err != nil {
			return nil, err
		}
		crd := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(text, &crd.Object); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		out = append(out, crd)
	}
	return out, nil
}
