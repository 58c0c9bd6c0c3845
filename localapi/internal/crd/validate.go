package crd

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/localapi/internal/expressions"
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
func validate(crd, before *apiextensionsv1.CustomResourceDefinition, cel expressions.Evaluator) (errs field.ErrorList) {
	c := &checks{cel: cel}
	c.anyBundle = before == nil || !apihelpers.IsCRDConditionTrue(before, apiextensionsv1.Established) ||
		hasInvalidBundle(before)
	internal, err := internalForm(crd)
	if err == nil && before != nil {
		c.before, err = internalForm(before)
	}
	if err != nil {
		return field.ErrorList{field.Invalid(field.NewPath("spec"), "", err.Error())}
	}
	if required := crd.Spec.Names.Plural + "." + crd.Spec.Group; crd.Name != required {
		errs = append(errs,
			field.Invalid(field.NewPath("metadata", "name"), crd.Name, `must be spec.names.plural+"."+spec.group`))
	}
	errs = append(errs, c.validateSpec(&internal.Spec, field.NewPath("spec"))...)
	errs = append(errs, validateNames(&internal.Status.AcceptedNames, field.NewPath("status", "acceptedNames"))...)
	errs = append(errs, validateStored(crd, field.NewPath("status", "storedVersions"))...)
	if crd.Spec.PreserveUnknownFields {
		errs = append(errs, field.Invalid(field.NewPath("spec", "preserveUnknownFields"), true,
			"cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"))
	}
	return errs
}

func internalForm(crd *apiextensionsv1.CustomResourceDefinition) (*apiextensions.CustomResourceDefinition, error) {
	internal := &apiextensions.CustomResourceDefinition{}
	err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(
		crd.DeepCopy(), internal, nil,
	)
	return internal, err
}

func validateCreate(crd *apiextensionsv1.CustomResourceDefinition, cel expressions.Evaluator) field.ErrorList {
	return append(validate(crd, nil, cel), validateApproval(crd, nil)...)
}

// validateUpdate validates a definition and what changed in it.
func validateUpdate(crd, before *apiextensionsv1.CustomResourceDefinition, cel expressions.Evaluator) field.ErrorList {
	errs := validate(crd, before, cel)
	spec := field.NewPath("spec")
	if apihelpers.IsCRDConditionTrue(before, apiextensionsv1.Established) {
		errs = append(errs,
			apivalidation.ValidateImmutableField(crd.Spec.Scope, before.Spec.Scope, spec.Child("scope"))...)
		errs = append(errs, apivalidation.ValidateImmutableField(crd.Spec.Names.Kind, before.Spec.Names.Kind,
			spec.Child("names", "kind"))...)
	}
	errs = append(errs, apivalidation.ValidateImmutableField(crd.Spec.Group, before.Spec.Group, spec.Child("group"))...)
	errs = append(errs, apivalidation.ValidateImmutableField(crd.Spec.Names.Plural, before.Spec.Names.Plural,
		spec.Child("names", "plural"))...)
	return append(errs, validateApproval(crd, before)...)
}

func validateStatusUpdate(obj, _ runtime.Object) field.ErrorList {
	internal, err := internalForm(of(obj))
	if err != nil {
		return field.ErrorList{field.Invalid(field.NewPath("status"), "", err.Error())}
	}
	return validateNames(&internal.Status.AcceptedNames, field.NewPath("status", "acceptedNames"))
}

// validateStored checks the versions that objects may be stored in against the versions of the definition.
func validateStored(crd *apiextensionsv1.CustomResourceDefinition, path *field.Path) (errs field.ErrorList) {
	stored := crd.Status.StoredVersions
	if len(stored) == 0 {
		return field.ErrorList{field.Invalid(path, stored, "must have at least one stored version")}
	}
	var known []string
	for _, v := range crd.Spec.Versions {
		known = append(known, v.Name)
		if v.Storage && !slices.Contains(stored, v.Name) {
			errs = append(errs, field.Invalid(path, stored, "must have the storage version "+v.Name))
		}
	}
	for i, v := range stored {
		if !slices.Contains(known, v) {
			errs = append(errs, field.Invalid(path.Index(i), v, fmt.Sprintf(
				"missing from spec.versions; %[1]s was previously a storage version, and must remain in "+
					"spec.versions until a storage migration ensures no data remains persisted in %[1]s and "+
					"removes %[1]s from status.storedVersions", v,
			)))
		}
	}
	return errs
}

// validateApproval guards the groups of the Kubernetes community. before is nil for a new definition.
func validateApproval(crd, before *apiextensionsv1.CustomResourceDefinition) field.ErrorList {
	if !apihelpers.IsProtectedCommunityGroup(crd.Spec.Group) {
		return nil
	}
	state, reason := apihelpers.GetAPIApprovalState(crd.Annotations)
	if before != nil {
		if old, _ := apihelpers.GetAPIApprovalState(before.Annotations); old == state {
			return nil
		}
	}
	path := field.NewPath("metadata", "annotations").Key(apiextensionsv1.KubeAPIApprovedAnnotation)
	switch state {
	case apihelpers.APIApproved, apihelpers.APIApprovalBypassed:
		return nil
	case apihelpers.APIApprovalMissing:
		return field.ErrorList{field.Required(path, reason)}
	}
	return field.ErrorList{field.Invalid(path, crd.Annotations[apiextensionsv1.KubeAPIApprovedAnnotation], reason)}
}

func (c *checks) validateSpec(s *apiextensions.CustomResourceDefinitionSpec, path *field.Path) field.ErrorList {
	errs := validateGroup(s.Group, path.Child("group"))
	switch s.Scope {
	case apiextensions.ClusterScoped, apiextensions.NamespaceScoped:
	case "":
		errs = append(errs, field.Required(path.Child("scope"), ""))
	default:
		errs = append(errs, field.NotSupported(path.Child("scope"), s.Scope,
			[]apiextensions.ResourceScope{apiextensions.ClusterScoped, apiextensions.NamespaceScoped}))
	}
	errs = append(errs, c.validateVersions(s, path.Child("versions"))...)
	for _, n := range []struct{ name, value string }{
		{"plural", s.Names.Plural},
		{"singular", s.Names.Singular},
		{"kind", s.Names.Kind},
		{"listKind", s.Names.ListKind},
	} {
		if n.value == "" {
			errs = append(errs, field.Required(path.Child("names", n.name), ""))
		}
	}
	errs = append(errs, validateNames(&s.Names, path.Child("names"))...)
	common := versionSchema{schema: s.Validation, version: s.Version, hasStatus: anyStatus(s)}
	errs = append(errs, c.validateSchema(common, path.Child("validation"))...)
	errs = append(errs, validateSubresources(s.Subresources, path.Child("subresources"))...)
	for i := range s.AdditionalPrinterColumns {
		errs = append(errs,
			validateColumn(&s.AdditionalPrinterColumns[i], path.Child("additionalPrinterColumns").Index(i))...)
	}
	if len(s.SelectableFields) > 0 {
		errs = append(errs, validateSelectable(s.SelectableFields, s.Validation, path.Child("selectableFields"))...)
	}
	if to := s.Conversion; to != nil && to.Strategy != apiextensions.NoneConverter &&
		ptr.Deref(s.PreserveUnknownFields, true) {
		errs = append(errs, field.Invalid(path.Child("conversion", "strategy"), to.Strategy,
			"must be None if spec.preserveUnknownFields is true"))
	}
	return append(errs, c.validateConversion(s.Conversion, path.Child("conversion"))...)
}

func validateGroup(group string, path *field.Path) field.ErrorList {
	if group == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	if problems := utilvalidation.IsDNS1123Subdomain(group); len(problems) > 0 {
		return field.ErrorList{field.Invalid(path, group, strings.Join(problems, ","))}
	}
	if !strings.Contains(group, ".") {
		return field.ErrorList{field.Invalid(path, group, "should be a domain with at least one dot")}
	}
	return nil
}

func (c *checks) validateVersions(s *apiextensions.CustomResourceDefinitionSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	common := s.Validation != nil && s.Validation.OpenAPIV3Schema != nil
	for i, v := range s.Versions {
		if !common && (v.Schema == nil || v.Schema.OpenAPIV3Schema == nil) {
			errs = append(errs, field.Required(path.Index(i).Child("schema", "openAPIV3Schema"), ""))
		}
	}
	storage, names := 0, map[string]bool{}
	for i := range s.Versions {
		v := &s.Versions[i]
		if v.Storage {
			storage++
		}
		names[v.Name] = true
		if problems := utilvalidation.IsDNS1035Label(v.Name); len(problems) > 0 {
			errs = append(errs, field.Invalid(path.Index(i).Child("name"), v.Name, strings.Join(problems, ",")))
		}
		errs = append(errs, c.validateVersion(s, v, path.Index(i))...)
	}
	if len(names) < len(s.Versions) {
		errs = append(errs, field.Invalid(path, s.Versions, "must contain unique version names"))
	}
	if storage != 1 {
		errs = append(errs, field.Invalid(path, s.Versions, "must have exactly one version marked as storage version"))
	}
	return errs
}

func (c *checks) validateVersion(s *apiextensions.CustomResourceDefinitionSpec,
	v *apiextensions.CustomResourceDefinitionVersion, path *field.Path,
) field.ErrorList {
	errs := validateDeprecation(v, path.Child("deprecationWarning"))
	hasStatus := v.Subresources != nil && v.Subresources.Status != nil || s.Subresources != nil &&
		s.Subresources.Status != nil
	own := versionSchema{schema: v.Schema, version: v.Name, hasStatus: hasStatus}
	errs = append(errs, c.validateSchema(own, path.Child("schema"))...)
	errs = append(errs, validateSubresources(v.Subresources, path.Child("subresources"))...)
	for i := range v.AdditionalPrinterColumns {
		errs = append(errs,
			validateColumn(&v.AdditionalPrinterColumns[i], path.Child("additionalPrinterColumns").Index(i))...)
	}
	if len(v.SelectableFields) > 0 {
		errs = append(errs, validateSelectable(v.SelectableFields, v.Schema, path.Child("selectableFields"))...)
	}
	return errs
}

func validateDeprecation(v *apiextensions.CustomResourceDefinitionVersion, path *field.Path) (errs field.ErrorList) {
	if v.DeprecationWarning == nil {
		return nil
	}
	var problems []string
	switch text := *v.DeprecationWarning; {
	case !v.Deprecated:
		problems = append(problems, "can only be set for deprecated versions")
	case text == "":
		problems = append(problems, "must not be an empty string")
	default:
		if len(text) > 256 {
			problems = append(problems, "must be <= 256 characters long")
		}
		if i := strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }); i >= 0 {
			problems = append(problems,
				fmt.Sprintf("must only contain printable UTF-8 characters; non-printable character found at index %d",
					i))
		}
	}
	for _, p := range problems {
		errs = append(errs, field.Invalid(path, v.DeprecationWarning, p))
	}
	return errs
}

func anyStatus(s *apiextensions.CustomResourceDefinitionSpec) bool {
	if s.Subresources != nil && s.Subresources.Status != nil {
		return true
	}
	return slices.ContainsFunc(s.Versions, func(v apiextensions.CustomResourceDefinitionVersion) bool {
		return v.Subresources != nil && v.Subresources.Status != nil
	})
}

// validateNames validates the names that are set.
func validateNames(names *apiextensions.CustomResourceDefinitionNames, path *field.Path) (errs field.ErrorList) {
	label := func(path *field.Path, value string) {
		if problems := utilvalidation.IsDNS1035Label(value); value != "" && len(problems) > 0 {
			errs = append(errs, field.Invalid(path, value, strings.Join(problems, ",")))
		}
	}
	kind := func(path *field.Path, value string) {
		if problems := utilvalidation.IsDNS1035Label(strings.ToLower(value)); value != "" && len(problems) > 0 {
			errs = append(errs, field.Invalid(path, value, "may have mixed case, but should otherwise match: "+
				strings.Join(problems, ",")))
		}
	}
	label(path.Child("plural"), names.Plural)
	label(path.Child("singular"), names.Singular)
	kind(path.Child("kind"), names.Kind)
	kind(path.Child("listKind"), names.ListKind)
	for i, name := range names.ShortNames {
		label(path.Child("shortNames").Index(i), name)
	}
	if names.Kind != "" && names.Kind == names.ListKind {
		errs = append(errs,
			field.Invalid(path.Child("listKind"), names.ListKind, "kind and listKind may not be the same"))
	}
	for i, category := range names.Categories {
		label(path.Child("categories").Index(i), category)
	}
	return errs
}

func (c *checks) validateConversion(to *apiextensions.CustomResourceConversion, path *field.Path) field.ErrorList {
	if to == nil {
		return nil
	}
	var errs field.ErrorList
	strategies := []apiextensions.ConversionStrategyType{apiextensions.NoneConverter, apiextensions.WebhookConverter}
	if to.Strategy == "" {
		errs = append(errs, field.Required(path.Child("strategy"), ""))
	} else if !slices.Contains(strategies, to.Strategy) {
		errs = append(errs, field.NotSupported(path.Child("strategy"), to.Strategy, strategies))
	}
	at, versions := path.Child("webhookClientConfig"), path.Child("conversionReviewVersions")
	if to.Strategy != apiextensions.WebhookConverter {
		const idle = "should not be set when strategy is not set to Webhook"
		if to.WebhookClientConfig != nil {
			errs = append(errs, field.Forbidden(at, idle))
		}
		if len(to.ConversionReviewVersions) > 0 {
			errs = append(errs, field.Forbidden(versions, idle))
		}
		return errs
	}
	if w := to.WebhookClientConfig; w == nil {
		errs = append(errs, field.Required(at, "required when strategy is set to Webhook"))
	} else {
		errs = append(errs, webhookclient.ValidateTarget(w.URL, serviceOf(w), at)...)
		if !c.anyBundle {
			errs = append(errs, webhookclient.ValidateBundle(w.CABundle, at.Child("caBundle"))...)
		}
	}
	return append(errs, webhookclient.ValidateVersions(to.ConversionReviewVersions, "", versions)...)
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
		len(webhookclient.ValidateBundle(c.Webhook.ClientConfig.CABundle, nil)) > 0
}
