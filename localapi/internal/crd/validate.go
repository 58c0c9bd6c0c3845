package crd

import (
	"slices"
	"strings"
	"unicode"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/localapi/internal/expressions"
	"github.com/flyball-dev/flyball/localapi/internal/verify"
	"github.com/flyball-dev/flyball/localapi/internal/webhookclient"
)

// The rules of this file and the next are those of k8s.io/apiextensions-apiserver v0.37.2
// pkg/apis/apiextensions/validation/validation.go for new definitions. Leniency towards definitions that older servers
// stored is left out. As there, definitions are validated in their internal form, in which the fields that all versions
// share are at the top. The paths in errors refer to that form.

// checks validates a definition.
type checks struct {
	cel expressions.Evaluator // nil: expressions are not compiled

	// before is the definition before the change, nil for a new one.
	before *apiextensions.CustomResourceDefinition

	// anyBundle: the bundle of the conversion may be invalid, because the definition is not established, or had such a
	// bundle already.
	anyBundle bool
}

// validate validates a whole definition. before is nil for a new one.
func validate(f verify.Field, crd, before *apiextensionsv1.CustomResourceDefinition, cel expressions.Evaluator) {
	c := &checks{cel: cel}
	c.anyBundle = before == nil || !apihelpers.IsCRDConditionTrue(before, apiextensionsv1.Established) ||
		hasInvalidBundle(before)
	internal, err := internalForm(crd)
	if err == nil && before != nil {
		c.before, err = internalForm(before)
	}
	if err != nil {
		f.Reject("spec", true, "", err.Error())
		return
	}
	f.Reject("metadata.name", crd.Name != crd.Spec.Names.Plural+"."+crd.Spec.Group, crd.Name,
		`must be spec.names.plural+"."+spec.group`)
	c.validateSpec(f.Child("spec"), &internal.Spec)
	validateNames(f.Child("status.acceptedNames"), &internal.Status.AcceptedNames)
	validateStored(f, crd)
	f.Reject("spec.preserveUnknownFields", crd.Spec.PreserveUnknownFields, true,
		"cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead")
}

func internalForm(crd *apiextensionsv1.CustomResourceDefinition) (*apiextensions.CustomResourceDefinition, error) {
	internal := &apiextensions.CustomResourceDefinition{}
	err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(
		crd.DeepCopy(), internal, nil,
	)
	return internal, err
}

func validateCreate(crd *apiextensionsv1.CustomResourceDefinition, cel expressions.Evaluator) field.ErrorList {
	return verify.Errors(nil, func(f verify.Field) {
		validate(f, crd, nil, cel)
		validateApproval(f, crd, nil)
	})
}

// validateUpdate validates a definition and what changed in it.
func validateUpdate(crd, before *apiextensionsv1.CustomResourceDefinition, cel expressions.Evaluator) field.ErrorList {
	return verify.Errors(nil, func(f verify.Field) {
		validate(f, crd, before, cel)
		if apihelpers.IsCRDConditionTrue(before, apiextensionsv1.Established) {
			f.Immutable("spec.scope", crd.Spec.Scope, before.Spec.Scope)
			f.Immutable("spec.names.kind", crd.Spec.Names.Kind, before.Spec.Names.Kind)
		}
		f.Immutable("spec.group", crd.Spec.Group, before.Spec.Group)
		f.Immutable("spec.names.plural", crd.Spec.Names.Plural, before.Spec.Names.Plural)
		validateApproval(f, crd, before)
	})
}

func validateStatusUpdate(obj, _ runtime.Object) field.ErrorList {
	return verify.Errors(field.NewPath("status"), func(f verify.Field) {
		if internal, err := internalForm(of(obj)); err != nil {
			f.Reject("", true, "", err.Error())
		} else {
			validateNames(f.Child("acceptedNames"), &internal.Status.AcceptedNames)
		}
	})
}

// validateStored checks the versions that objects may be stored in against the versions of the definition.
func validateStored(f verify.Field, crd *apiextensionsv1.CustomResourceDefinition) {
	stored := crd.Status.StoredVersions
	if len(stored) == 0 {
		f.Reject("status.storedVersions", true, stored, "must have at least one stored version")
		return
	}
	var known []string
	for _, v := range crd.Spec.Versions {
		known = append(known, v.Name)
		f.Reject("status.storedVersions", v.Storage && !slices.Contains(stored, v.Name), stored,
			"must have the storage version "+v.Name)
	}
	verify.Each(f, "status.storedVersions", stored, func(f verify.Field, v *string) {
		f.Rejectf("", !slices.Contains(known, *v), *v,
			"missing from spec.versions; %[1]s was previously a storage version, and must remain in spec.versions "+
				"until a storage migration ensures no data remains persisted in %[1]s and removes %[1]s from "+
				"status.storedVersions", *v)
	})
}

// validateApproval guards the groups of the Kubernetes community. before is nil for a new definition.
func validateApproval(f verify.Field, crd, before *apiextensionsv1.CustomResourceDefinition) {
	if !apihelpers.IsProtectedCommunityGroup(crd.Spec.Group) {
		return
	}
	state, reason := apihelpers.GetAPIApprovalState(crd.Annotations)
	if before != nil {
		if old, _ := apihelpers.GetAPIApprovalState(before.Annotations); old == state {
			return
		}
	}
	f = f.Child("metadata.annotations").Key(apiextensionsv1.KubeAPIApprovedAnnotation)
	switch state {
	case apihelpers.APIApproved, apihelpers.APIApprovalBypassed:
	case apihelpers.APIApprovalMissing:
		f.Require("", false, reason)
	default:
		f.Reject("", true, crd.Annotations[apiextensionsv1.KubeAPIApprovedAnnotation], reason)
	}
}

func (c *checks) validateSpec(f verify.Field, s *apiextensions.CustomResourceDefinitionSpec) {
	f.Require("group", s.Group != "", "")
	f.MatchIfSet("group", s.Group, func(group string) []string {
		if problems := verify.Joined(utilvalidation.IsDNS1123Subdomain)(group); len(problems) > 0 {
			return problems
		}
		if !strings.Contains(group, ".") {
			return []string{"should be a domain with at least one dot"}
		}
		return nil
	})
	verify.OneOf(f, "scope", s.Scope, apiextensions.ClusterScoped, apiextensions.NamespaceScoped)
	c.validateVersions(f, s)
	f.Require("names.plural", s.Names.Plural != "", "")
	f.Require("names.singular", s.Names.Singular != "", "")
	f.Require("names.kind", s.Names.Kind != "", "")
	f.Require("names.listKind", s.Names.ListKind != "", "")
	validateNames(f.Child("names"), &s.Names)
	c.validateSchema(f.Child("validation"), versionSchema{s.Validation, s.Version, anyStatus(s)})
	validateParts(f, s.Subresources, s.AdditionalPrinterColumns, s.SelectableFields, s.Validation)
	if to := s.Conversion; to != nil {
		f.Reject("conversion.strategy", to.Strategy != apiextensions.NoneConverter &&
			ptr.Deref(s.PreserveUnknownFields, true), to.Strategy,
			"must be None if spec.preserveUnknownFields is true")
		c.validateConversion(f.Child("conversion"), to)
	}
}

func (c *checks) validateVersions(f verify.Field, s *apiextensions.CustomResourceDefinitionSpec) {
	common := s.Validation != nil && s.Validation.OpenAPIV3Schema != nil
	storage, names := 0, map[string]bool{}
	for i, v := range s.Versions {
		f.Child("versions").Index(i).Require("schema.openAPIV3Schema",
			common || v.Schema != nil && v.Schema.OpenAPIV3Schema != nil, "")
		if v.Storage {
			storage++
		}
		names[v.Name] = true
	}
	verify.Each(f, "versions", s.Versions, func(f verify.Field, v *apiextensions.CustomResourceDefinitionVersion) {
		f.Match("name", v.Name, verify.Joined(utilvalidation.IsDNS1035Label))
		c.validateVersion(f, s, v)
	})
	f.Reject("versions", len(names) < len(s.Versions), s.Versions, "must contain unique version names")
	f.Reject("versions", storage != 1, s.Versions, "must have exactly one version marked as storage version")
}

func (c *checks) validateVersion(
	f verify.Field, s *apiextensions.CustomResourceDefinitionSpec, v *apiextensions.CustomResourceDefinitionVersion,
) {
	validateDeprecation(f, v)
	c.validateSchema(f.Child("schema"),
		versionSchema{v.Schema, v.Name, hasStatus(v.Subresources) || hasStatus(s.Subresources)})
	validateParts(f, v.Subresources, v.AdditionalPrinterColumns, v.SelectableFields, v.Schema)
}

// validateParts validates what a version has, or all of them have.
func validateParts(
	f verify.Field, sub *apiextensions.CustomResourceSubresources,
	columns []apiextensions.CustomResourceColumnDefinition, selectable []apiextensions.SelectableField,
	schema *apiextensions.CustomResourceValidation,
) {
	validateSubresources(f, sub)
	verify.Each(f, "additionalPrinterColumns", columns, validateColumn)
	if len(selectable) > 0 {
		validateSelectable(f, selectable, schema)
	}
}

func validateDeprecation(f verify.Field, v *apiextensions.CustomResourceDefinitionVersion) {
	if v.DeprecationWarning == nil {
		return
	}
	f, text := f.Child("deprecationWarning"), v.DeprecationWarning
	switch {
	case !v.Deprecated:
		f.Reject("", true, text, "can only be set for deprecated versions")
	case *text == "":
		f.Reject("", true, text, "must not be an empty string")
	default:
		f.Reject("", len(*text) > 256, text, "must be <= 256 characters long")
		i := strings.IndexFunc(*text, func(r rune) bool { return !unicode.IsPrint(r) })
		f.Rejectf("", i >= 0, text,
			"must only contain printable UTF-8 characters; non-printable character found at index %d", i)
	}
}

func hasStatus(s *apiextensions.CustomResourceSubresources) bool { return s != nil && s.Status != nil }

func anyStatus(s *apiextensions.CustomResourceDefinitionSpec) bool {
	return hasStatus(s.Subresources) ||
		slices.ContainsFunc(s.Versions, func(v apiextensions.CustomResourceDefinitionVersion) bool {
			return hasStatus(v.Subresources)
		})
}

func validateNames(f verify.Field, names *apiextensions.CustomResourceDefinitionNames) {
	label := verify.Joined(utilvalidation.IsDNS1035Label)
	f.MatchIfSet("plural", names.Plural, label)
	f.MatchIfSet("singular", names.Singular, label)
	f.MatchIfSet("kind", names.Kind, verify.Kind)
	f.MatchIfSet("listKind", names.ListKind, verify.Kind)
	labels := func(f verify.Field, name *string) { f.MatchIfSet("", *name, label) }
	verify.Each(f, "shortNames", names.ShortNames, labels)
	f.Reject("listKind", names.Kind != "" && names.Kind == names.ListKind, names.ListKind,
		"kind and listKind may not be the same")
	verify.Each(f, "categories", names.Categories, labels)
}

func (c *checks) validateConversion(f verify.Field, to *apiextensions.CustomResourceConversion) {
	verify.OneOf(f, "strategy", to.Strategy, apiextensions.NoneConverter, apiextensions.WebhookConverter)
	w := to.WebhookClientConfig
	if to.Strategy != apiextensions.WebhookConverter {
		const idle = "should not be set when strategy is not set to Webhook"
		f.Forbid("webhookClientConfig", w != nil, idle)
		f.Forbid("conversionReviewVersions", len(to.ConversionReviewVersions) > 0, idle)
		return
	}
	f.Require("webhookClientConfig", w != nil, "required when strategy is set to Webhook")
	if w != nil {
		webhookclient.ValidateTarget(f.Child("webhookClientConfig"), w.URL, serviceOf(w))
		if !c.anyBundle {
			webhookclient.ValidateBundle(f.Child("webhookClientConfig.caBundle"), w.CABundle)
		}
	}
	webhookclient.ValidateVersions(f.Child("conversionReviewVersions"), to.ConversionReviewVersions, "")
}

func serviceOf(w *apiextensions.WebhookClientConfig) *webhookclient.Service {
	s := w.Service
	if s == nil {
		return nil
	}
	return &webhookclient.Service{Namespace: s.Namespace, Name: s.Name, Port: s.Port, Path: ptr.Deref(s.Path, "")}
}

// hasInvalidBundle reports whether nobody can be trusted by the bundle of a definition's conversion.
func hasInvalidBundle(crd *apiextensionsv1.CustomResourceDefinition) bool {
	c := crd.Spec.Conversion
	return c != nil && c.Webhook != nil && c.Webhook.ClientConfig != nil &&
		len(verify.Errors(nil, func(f verify.Field) {
			webhookclient.ValidateBundle(f, c.Webhook.ClientConfig.CABundle)
		})) > 0
}
