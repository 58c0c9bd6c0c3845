package customresource

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/flyball-dev/flyball/localapi/internal/expressions"
	"github.com/flyball-dev/flyball/localapi/internal/resource"
)

// Definitions returns the types that the server serves for a definition, one for each served version. cel evaluates
// their rules; nil leaves them out.
func Definitions(crd *apiextensionsv1.CustomResourceDefinition,
	cel expressions.Evaluator,
) ([]*resource.Definition, error) {
	storage, err := apihelpers.GetCRDStorageVersion(crd)
	if err != nil {
		return nil, err
	}
	names := crd.Status.AcceptedNames
	published := map[schema.GroupVersionKind]*spec.Schema{}
	types := sync.OnceValues(func() (managedfields.TypeConverter, error) { return typeConverter(published) })
	var all []*resource.Definition
	var versions []string
	schemas := map[string]*Schema{}
	for i := range crd.Spec.Versions {
		v := &crd.Spec.Versions[i]
		versions = append(versions, v.Name)
		s, err := schemaOf(v, cel)
		if err != nil {
			return nil, fmt.Errorf("version %s of %s: %w", v.Name, crd.Name, err)
		}
		gv := schema.GroupVersion{Group: crd.Spec.Group, Version: v.Name}
		schemas[v.Name] = s
		published[gv.WithKind(names.Kind)] = s.publish(gv.WithKind(names.Kind))
		if !v.Served {
			continue
		}
		d := &resource.Definition{
			GroupVersion: gv, Kind: names.Kind, ListKind: names.ListKind, Plural: names.Plural,
			Singular:   names.Singular,
			ShortNames: names.ShortNames, Categories: names.Categories,
			Namespaced:           crd.Spec.Scope == apiextensionsv1.NamespaceScoped,
			NeedsResourceVersion: true, StorageVersion: storage,
			Terminating: apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.Terminating),
			Types: func() managedfields.TypeConverter {
				c, err := types()
				if err != nil { // without a readable schema, types are deduced from the values of fields
					return managedfields.NewDeducedTypeConverter()
				}
				return c
			},
			OpenAPI: func() (string, *spec.Schema) {
				kind := gv.WithKind(names.Kind)
				return modelName(kind), published[kind]
			},
		}
		if err := complete(d, v, s); err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	for _, d := range all {
		d.Versions = versions
		d.Conform = func(obj runtime.Object) error { return conform(obj, schemas) }
	}
	return all, nil
}

// conform coerces an object of any version to the schema of its version, and sets the defaults there.
func conform(obj runtime.Object, schemas map[string]*Schema) error {
	s := schemas[obj.GetObjectKind().GroupVersionKind().Version]
	if s == nil {
		return fmt.Errorf("%v is no version of the definition", obj.GetObjectKind().GroupVersionKind())
	}
	if _, err := s.Coerce(obj); err != nil {
		return err
	}
	s.Default(obj)
	return nil
}

// schemaOf returns the schema of a version. A version without one gets an empty schema.
func schemaOf(v *apiextensionsv1.CustomResourceDefinitionVersion, cel expressions.Evaluator) (*Schema, error) {
	props := &apiextensionsv1.JSONSchemaProps{Type: "object"}
	if v.Schema != nil && v.Schema.OpenAPIV3Schema != nil {
		props = v.Schema.OpenAPIV3Schema
	}
	return NewSchema(props, cel)
}

// strategy holds the rules of one version.
//
// Source: k8s.io/apiextensions-apiserver pkg/registry/customresource/strategy.go, status_strategy.go.
type strategy struct {
	schema    *Schema
	hasStatus bool
	scale     *scale
	fields    []string // paths of selectable fields, without the first dot
}

func complete(d *resource.Definition, v *apiextensionsv1.CustomResourceDefinitionVersion, s *Schema) error {
	kind := d.GroupVersionKind()
	d.New = func() runtime.Object {
		u := &unstructured.Unstructured{Object: map[string]any{}}
		u.SetGroupVersionKind(kind)
		return u
	}
	d.NewList = func() runtime.Object { return &unstructured.UnstructuredList{} }
	r := &strategy{schema: s}
	if sub := v.Subresources; sub != nil {
		r.hasStatus = sub.Status != nil
		if sub.Scale != nil {
			at := newScale(sub.Scale)
			r.scale = &at
			d.Subresources = map[string]resource.Subresource{"scale": at.subresource()}
		}
	}
	for _, f := range v.SelectableFields {
		r.fields = append(r.fields, strings.TrimPrefix(f.JSONPath, "."))
	}
	p, err := newPrinter(v.AdditionalPrinterColumns)
	if err != nil {
		return err
	}
	d.HasStatus, d.Columns, d.Row = r.hasStatus, p.columns, p.row
	d.StatusResets = []fieldpath.Path{fieldpath.MakePathOrDie("metadata")}
	d.Coerce, d.Default = s.Coerce, s.Default
	d.PrepareCreate, d.PrepareUpdate, d.PrepareStatusUpdate = r.prepareCreate, r.prepareUpdate, r.prepareStatusUpdate
	d.ValidateCreate = func(obj runtime.Object) field.ErrorList { return r.validate(obj, nil) }
	d.ValidateUpdate, d.ValidateStatusUpdate = r.validate, r.validateStatus
	d.ValidateRules = s.ValidateRules
	d.Warnings, d.Deprecation = finalizerWarnings, deprecationWarning(v, kind)
	if len(r.fields) > 0 {
		d.Fields = r.selectable
	}
	return nil
}

func (r *strategy) prepareCreate(_ context.Context, obj runtime.Object) {
	u := obj.(*unstructured.Unstructured)
	if r.hasStatus {
		delete(u.Object, "status")
	}
	u.SetGeneration(1)
}

func (r *strategy) prepareUpdate(_ context.Context, obj, old runtime.Object) {
	u, before := obj.(*unstructured.Unstructured), old.(*unstructured.Unstructured)
	if status, ok := before.Object["status"]; r.hasStatus && ok {
		u.Object["status"] = runtime.DeepCopyJSONValue(status)
	} else if r.hasStatus {
		delete(u.Object, "status")
	}
	if !equality.Semantic.DeepEqual(withoutMetadata(u.Object), withoutMetadata(before.Object)) {
		u.SetGeneration(before.GetGeneration() + 1)
	}
}

func withoutMetadata(content map[string]any) map[string]any {
	rest := make(map[string]any, len(content))
	for name, value := range content {
		if name != "metadata" {
			rest[name] = value
		}
	}
	return rest
}

// prepareStatusUpdate restores everything except the status and the managed fields.
func (r *strategy) prepareStatusUpdate(_ context.Context, obj, old runtime.Object) {
	u, before := obj.(*unstructured.Unstructured), old.(*unstructured.Unstructured)
	status, ok := u.Object["status"]
	managed := u.GetManagedFields()
	u.Object = before.DeepCopy().Object
	u.SetManagedFields(managed)
	delete(u.Object, "status")
	if ok {
		u.Object["status"] = status
	}
}

func (r *strategy) validate(obj, old runtime.Object) field.ErrorList {
	errs := r.schema.Validate(obj, old)
	if r.scale != nil {
		errs = append(errs, r.scale.validate(obj, false)...)
	}
	return errs
}

func (r *strategy) validateStatus(obj, old runtime.Object) field.ErrorList {
	errs := r.schema.ValidateStatus(obj, old)
	if r.scale != nil {
		errs = append(errs, r.scale.validate(obj, true)...)
	}
	return errs
}

// selectable returns the values of the selectable fields; "" for a missing one.
func (r *strategy) selectable(obj runtime.Object) fields.Set {
	set := fields.Set{}
	for _, path := range r.fields {
		set[path] = ""
		if value, _ := find("."+path, contentOf(obj)); value != nil {
			set[path] = fmt.Sprint(value)
		}
	}
	return set
}
