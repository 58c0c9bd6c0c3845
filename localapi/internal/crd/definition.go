package crd

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
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

// Accept decides whether crd gets the names that it asks for, given the other definitions. It returns crd with its
// accepted names and the resulting conditions, and whether these differ from the previous ones.
//
// Source: k8s.io/apiextensions-apiserver pkg/controller/status/naming_controller.go.
func Accept(crd *apiextensionsv1.CustomResourceDefinition,
	others []*apiextensionsv1.CustomResourceDefinition,
) (*apiextensionsv1.CustomResourceDefinition, bool) {
	if equality.Semantic.DeepEqual(crd.Spec.Names, crd.Status.AcceptedNames) {
		return crd, false
	}
	result := crd.DeepCopy()
	names, condition := choose(crd, takenNames(crd, others))
	before := apihelpers.FindCRDCondition(crd, apiextensionsv1.NamesAccepted)
	if equality.Semantic.DeepEqual(names, crd.Status.AcceptedNames) && before != nil &&
		apihelpers.IsCRDConditionEquivalent(&condition, before) {
		return crd, false
	}
	result.Status.AcceptedNames = names
	apihelpers.SetCRDCondition(result, condition)
	established := apiextensionsv1.CustomResourceDefinitionCondition{
		Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionFalse, Reason: "NotAccepted",
		Message: "not all names are accepted",
	}
	if old := apihelpers.FindCRDCondition(crd, apiextensionsv1.Established); old != nil {
		established = *old
	}
	if established.Status != apiextensionsv1.ConditionTrue && condition.Status == apiextensionsv1.ConditionTrue {
		established.Reason, established.Message = "Installing", "the initial names have been accepted"
	}
	apihelpers.SetCRDCondition(result, established)
	return result, true
}

// taken holds the names in a group that other definitions have.
type taken struct{ resources, kinds []string }

func takenNames(crd *apiextensionsv1.CustomResourceDefinition,
	others []*apiextensionsv1.CustomResourceDefinition,
) taken {
	var t taken
	for _, other := range others {
		if other.Spec.Group != crd.Spec.Group || other.Name == crd.Name {
			continue
		}
		names := other.Status.AcceptedNames
		t.resources = append(append(t.resources, names.Plural, names.Singular), names.ShortNames...)
		t.kinds = append(t.kinds, names.Kind, names.ListKind)
	}
	return t
}

// choose keeps the names that crd has and adds the requested ones that are free.
func choose(crd *apiextensionsv1.CustomResourceDefinition,
	t taken,
) (apiextensionsv1.CustomResourceDefinitionNames, apiextensionsv1.CustomResourceDefinitionCondition) {
	wanted, names := crd.Spec.Names, *crd.Status.AcceptedNames.DeepCopy()
	condition := apiextensionsv1.CustomResourceDefinitionCondition{
		Type: apiextensionsv1.NamesAccepted, Status: apiextensionsv1.ConditionTrue, Reason: "NoConflicts",
		Message: "no conflicts found",
	}
	refuse := func(reason string, err error) {
		condition.Status, condition.Reason, condition.Message = apiextensionsv1.ConditionFalse, reason, err.Error()
	}
	for _, n := range []struct {
		wanted string
		has    *string
		taken  []string
		reason string
	}{
		{wanted.Plural, &names.Plural, t.resources, "PluralConflict"},
		{wanted.Singular, &names.Singular, t.resources, "SingularConflict"},
		{wanted.Kind, &names.Kind, t.kinds, "KindConflict"},
		{wanted.ListKind, &names.ListKind, t.kinds, "ListKindConflict"},
	} {
		if err := free(n.wanted, *n.has, n.taken); err != nil {
			refuse(n.reason, err)
		} else {
			*n.has = n.wanted
		}
	}
	var errs []error
	for _, short := range wanted.ShortNames {
		if !slices.Contains(names.ShortNames, short) {
			errs = append(errs, free(short, "", t.resources))
		}
	}
	if err := errors.Join(errs...); err != nil {
		refuse("ShortNamesConflict", utilerrors.NewAggregate(errs))
	} else {
		names.ShortNames = wanted.ShortNames
	}
	names.Categories = wanted.Categories
	return names, condition
}

func free(wanted, has string, taken []string) error {
	if wanted == has || !slices.Contains(taken, wanted) {
		return nil
	}
	return fmt.Errorf("%q is already in use", wanted)
}

// Establish returns crd with the condition that it is established, and whether that is a change. Its names must be
// accepted. A bundle for its conversion that nobody can be trusted by makes the condition false.
//
// Source: k8s.io/apiextensions-apiserver pkg/controller/establish/establishing_controller.go.
func Establish(crd *apiextensionsv1.CustomResourceDefinition) (*apiextensionsv1.CustomResourceDefinition, bool) {
	if !apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.NamesAccepted) ||
		apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.Established) {
		return crd, false
	}
	established := apiextensionsv1.CustomResourceDefinitionCondition{
		Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue,
		Reason: "InitialNamesAccepted", Message: "the initial names have been accepted",
	}
	if hasInvalidBundle(crd) {
		established.Status, established.Reason = apiextensionsv1.ConditionFalse, "InvalidCABundle"
		established.Message = "The conversion webhook CABundle is invalid"
	}
	if old := apihelpers.FindCRDCondition(crd, apiextensionsv1.Established); old != nil &&
		apihelpers.IsCRDConditionEquivalent(&established, old) {
		return crd, false
	}
	result := crd.DeepCopy()
	apihelpers.SetCRDCondition(result, established)
	return result, true
}

// Served reports whether the server answers requests for what crd defines.
func Served(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.NamesAccepted) ||
		apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.Established)
}

// progress is how far the deletion of a definition is.
type progress struct {
	status          apiextensionsv1.ConditionStatus
	reason, message string
}

var deletionPending = progress{
	apiextensionsv1.ConditionTrue, "InstanceDeletionPending",
	"CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
}

func terminating(crd *apiextensionsv1.CustomResourceDefinition, p progress) {
	apihelpers.SetCRDCondition(crd, apiextensionsv1.CustomResourceDefinitionCondition{
		Type: apiextensionsv1.Terminating, Status: p.status, Reason: p.reason, Message: p.message,
	})
}

// Terminating reports whether crd is being deleted.
func Terminating(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.Terminating)
}

// ToClean reports whether crd is being deleted and its objects must be deleted first.
func ToClean(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return crd.DeletionTimestamp != nil &&
		apihelpers.CRDHasFinalizer(crd, apiextensionsv1.CustomResourceCleanupFinalizer)
}

const cleaning = "InstanceDeletionInProgress"

// Cleaning returns crd, which is being deleted, with the condition that its objects are being deleted, and whether that
// is a change.
//
// Source: k8s.io/apiextensions-apiserver pkg/controller/finalizer/crd_finalizer.go, also for Cleaned.
func Cleaning(crd *apiextensionsv1.CustomResourceDefinition) (*apiextensionsv1.CustomResourceDefinition, bool) {
	if c := apihelpers.FindCRDCondition(crd, apiextensionsv1.Terminating); c != nil && c.Reason == cleaning {
		return crd, false
	}
	result := crd.DeepCopy()
	terminating(result, progress{apiextensionsv1.ConditionTrue, cleaning, "CustomResource deletion is in progress"})
	return result, true
}

// Cleaned returns crd, which is being deleted and has no objects left, without its finalizer, and whether that is a
// change.
func Cleaned(crd *apiextensionsv1.CustomResourceDefinition) (*apiextensionsv1.CustomResourceDefinition, bool) {
	if !ToClean(crd) {
		return crd, false
	}
	result := crd.DeepCopy()
	done := progress{apiextensionsv1.ConditionFalse, "InstanceDeletionCompleted", "removed all instances"}
	if !apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.Established) {
		done = progress{apiextensionsv1.ConditionFalse, "NeverEstablished", "resource was never established"}
	}
	terminating(result, done)
	apihelpers.CRDRemoveFinalizer(result, apiextensionsv1.CustomResourceCleanupFinalizer)
	return result, true
}
