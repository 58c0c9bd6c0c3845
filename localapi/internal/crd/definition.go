package crd

import (
	"context"
	"reflect"
	"slices"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flyball-dev/flyball/localapi/internal/expressions"
	"github.com/flyball-dev/flyball/localapi/internal/openapi"
	"github.com/flyball-dev/flyball/localapi/internal/resource"
)

// Kind and Resource name the type.
var (
	Kind     = apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition")
	Resource = apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")
)

// Definition returns the rules of the type. cel evaluates the expressions in definitions; if it is nil, nothing does.
//
// Source: k8s.io/apiextensions-apiserver pkg/registry/customresourcedefinition/strategy.go, etcd.go.
func Definition(cel expressions.Evaluator) *resource.Definition {
	return &resource.Definition{
		GroupVersion: Kind.GroupVersion(), Kind: Kind.Kind, Plural: Resource.Resource,
		Singular:   "customresourcedefinition",
		ShortNames: []string{"crd", "crds"}, Categories: []string{"api-extensions"}, HasStatus: true,
		New:                  func() runtime.Object { return &apiextensionsv1.CustomResourceDefinition{} },
		NewList:              func() runtime.Object { return &apiextensionsv1.CustomResourceDefinitionList{} },
		NeedsResourceVersion: true,
		Default: func(obj runtime.Object) {
			apiextensionsv1.SetDefaults_CustomResourceDefinition(of(obj))
			setPorts(of(obj))
		},
		PrepareCreate: func(_ context.Context, obj runtime.Object) {
			crd := of(obj)
			crd.Status = apiextensionsv1.CustomResourceDefinitionStatus{}
			crd.Generation = 1
			noteStored(crd)
		},
		PrepareUpdate: prepareUpdate,
		PrepareStatusUpdate: func(_ context.Context, obj, old runtime.Object) {
			of(obj).Spec = *of(old).Spec.DeepCopy()
		},
		PrepareDelete:     func(_ context.Context, obj runtime.Object) { terminating(of(obj), deletionPending) },
		DeletionFinalizer: apiextensionsv1.CustomResourceCleanupFinalizer,
		Finalizing: func(obj runtime.Object) bool {
			return slices.Contains(of(obj).Finalizers, apiextensionsv1.CustomResourceCleanupFinalizer)
		},
		ValidateCreate: func(obj runtime.Object) field.ErrorList { return validateCreate(of(obj), cel) },
		ValidateUpdate: func(obj, old runtime.Object) field.ErrorList { return validateUpdate(of(obj), of(old), cel) },

		ValidateStatusUpdate: validateStatusUpdate,
		Warnings:             func(obj, old runtime.Object) []string { return warnings(obj, old, cel != nil) },
		Types:                types,
	}
}

// types converts definitions to typed values. It states which lists are sets or maps for apply, since the Go types do
// not.
var types = sync.OnceValue(func() managedfields.TypeConverter {
	name, schemas := openapi.Schemas(reflect.TypeFor[apiextensionsv1.CustomResourceDefinition]())
	schemas[name].AddExtension("x-kubernetes-group-version-kind", []any{
		map[string]any{"group": Kind.Group, "version": Kind.Version, "kind": Kind.Kind},
	})
	status, _ := openapi.Schemas(reflect.TypeFor[apiextensionsv1.CustomResourceDefinitionStatus]())
	conditions := schemas[status].Properties["conditions"]
	conditions.AddExtension("x-kubernetes-list-type", "map")
	conditions.AddExtension("x-kubernetes-list-map-keys", []any{"type"})
	schemas[status].Properties["conditions"] = conditions
	c, err := managedfields.NewTypeConverter(schemas, false)
	if err != nil {
		panic(err) // cannot fail: the types are compiled in, and a test reads them
	}
	return c
})

func of(obj runtime.Object) *apiextensionsv1.CustomResourceDefinition {
	return obj.(*apiextensionsv1.CustomResourceDefinition)
}

func prepareUpdate(_ context.Context, obj, old runtime.Object) {
	crd, before := of(obj), of(old)
	crd.Status = *before.Status.DeepCopy()
	if !equality.Semantic.DeepEqual(crd.Spec, before.Spec) {
		crd.Generation = before.Generation + 1
	}
	noteStored(crd)
}

// noteStored adds the storage version to the versions that objects may be stored in.
func noteStored(crd *apiextensionsv1.CustomResourceDefinition) {
	storage, err := apihelpers.GetCRDStorageVersion(crd)
	if err == nil && !apihelpers.IsStoredVersion(crd, storage) {
		crd.Status.StoredVersions = append(crd.Status.StoredVersions, storage)
	}
}

// setPorts sets the default port of a conversion webhook.
func setPorts(crd *apiextensionsv1.CustomResourceDefinition) {
	if c := crd.Spec.Conversion; c != nil && c.Webhook != nil && c.Webhook.ClientConfig != nil &&
		c.Webhook.ClientConfig.Service != nil {
		apiextensionsv1.SetDefaults_ServiceReference(c.Webhook.ClientConfig.Service)
	}
}
