package handlers

import (
	"cmp"
	"fmt"
	"strings"
	"unicode"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metascheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	listvalidation "k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/localapi/internal/codec"
	"github.com/flyball-dev/flyball/localapi/internal/registry"
)

// queryOptions parses the query into the options of a verb. Errors: BadRequest.
func (x *exchange) queryOptions(o runtime.Object) error {
	if len(x.query) == 0 {
		return nil
	}
	if err := metascheme.ParameterCodec.DecodeParameters(x.query, metav1.SchemeGroupVersion, o); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	return nil
}

// listOptions parses the query of a list, watch or deletecollection.
func (x *exchange) listOptions() (o internalversion.ListOptions, err error) {
	if err := x.queryOptions(&o); err != nil {
		return o, err
	}
	internalversion.SetListOptionsDefaults(&o, true)
	if errs := listvalidation.ValidateListOptions(&o, true); len(errs) > 0 {
		return o, invalidOptions("ListOptions", errs)
	}
	return o, nil
}

// selection returns the selection of a list or watch.
func (x *exchange) selection(o internalversion.ListOptions) (registry.Selection, error) {
	selector := o.FieldSelector
	if x.target.Named { // a watch of one object, named in the path
		name := fields.OneTermEqualSelector("metadata.name", x.info.Name)
		if selector == nil || selector.Empty() {
			selector = name
		} else if named, ok := selector.RequiresExactMatch("metadata.name"); !ok || named != x.info.Name {
			return registry.Selection{},
				apierrors.NewBadRequest("fieldSelector metadata.name doesn't match requested name")
		}
	}
	selection, err := x.res.NewSelection(x.info.Namespace, o.LabelSelector, selector)
	if err == nil && o.ShardSelector != "" {
		err = selection.SetShard(o.ShardSelector)
	}
	return selection, err
}

// writeOptions parses the query of a create or update, which have the same options.
func (x *exchange) writeOptions(kind string) (registry.WriteOptions, error) {
	var o metav1.UpdateOptions
	if err := x.queryOptions(&o); err != nil {
		return registry.WriteOptions{}, err
	}
	if errs := validation.ValidateUpdateOptions(&o); len(errs) > 0 {
		return registry.WriteOptions{}, invalidOptions(kind, errs)
	}
	return x.admitting(x.optionsOf(o.DryRun, o.FieldManager), o), nil
}

// patchOptions parses the query of a patch.
func (x *exchange) patchOptions(t types.PatchType) (o registry.WriteOptions, force bool, err error) {
	var p metav1.PatchOptions
	if err := x.queryOptions(&p); err != nil {
		return registry.WriteOptions{}, false, err
	}
	if errs := validation.ValidatePatchOptions(&p, t); len(errs) > 0 {
		return registry.WriteOptions{}, false, invalidOptions("PatchOptions", errs)
	}
	o = x.optionsOf(p.DryRun, p.FieldManager)
	o.Apply = t == types.ApplyYAMLPatchType
	as := metav1.UpdateOptions{DryRun: p.DryRun, FieldManager: p.FieldManager, FieldValidation: p.FieldValidation}
	return x.admitting(o, as), ptr.Deref(p.Force, false), nil
}

func (x *exchange) optionsOf(dryRun []string, manager string) registry.WriteOptions {
	if manager == "" {
		manager = managerOfUserAgent(x.info.UserAgent)
	}
	return registry.WriteOptions{
		DryRun: len(dryRun) > 0, Manager: manager, Warn: x.warn, Admit: x.mayGrant,
		Permit: x.permitted,
	}
}

// deleteOptions parses the body of a delete, or its query if there is no body.
func (x *exchange) deleteOptions() (o metav1.DeleteOptions, err error) {
	if len(x.body) > 0 {
		format, err := codec.InputFormat(x.r)
		if err != nil {
			return o, err
		}
		if o, err = codec.DeleteOptions(codec.Body{Bytes: x.body, Format: format}); err != nil {
			return o, err
		}
	} else if err := x.queryOptions(&o); err != nil {
		return o, err
	}
	x.dryRun = len(o.DryRun) > 0
	if errs := validation.ValidateDeleteOptions(&o); len(errs) > 0 {
		return o, invalidOptions("DeleteOptions", errs)
	}
	return o, nil
}

func invalidOptions(kind string, errs field.ErrorList) error {
	return apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: kind}, "", errs)
}

// strictness returns how to treat unknown and duplicate fields.
func (x *exchange) strictness() string {
	return cmp.Or(x.query.Get("fieldValidation"), metav1.FieldValidationWarn)
}

// decode reads the body as an object of the given kind.
func (x *exchange) decode(kind schema.GroupVersionKind, into runtime.Object) (runtime.Object, error) {
	format, err := codec.InputFormat(x.r)
	if err != nil {
		return nil, err
	}
	if u, ok := into.(*unstructured.Unstructured); ok && x.res.Definition.KindOptional {
		into = codec.OptionalKind(u, kind)
	}
	strictness := x.strictness()
	obj, problems, err := x.api.Codec.Decode(codec.Body{Bytes: x.body, Format: format}, kind, into,
		strictness != metav1.FieldValidationIgnore)
	if err != nil {
		return nil, err
	}
	dropped, err := x.coerce(obj)
	if err != nil {
		return nil, err
	}
	if problems = append(problems, dropped...); len(problems) > 0 && strictness != metav1.FieldValidationIgnore {
		if strictness == metav1.FieldValidationStrict {
			return nil, codec.StrictError(kind, problems)
		}
		x.warnAll(problems...)
	}
	return obj, nil
}

// coerce makes an object without a Go type conform to its schema, and returns what it dropped.
func (x *exchange) coerce(obj runtime.Object) (problems []error, err error) {
	if x.res.Definition.Coerce == nil || !codec.IsUnstructured(obj) {
		return nil, nil
	}
	unknown, err := x.res.Definition.Coerce(obj)
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: %v",
			x.res.Definition.Kind, x.res.Definition.GroupVersion.Version, x.res.Definition.Kind, err))
	}
	for _, path := range unknown {
		problems = append(problems, fmt.Errorf("unknown field %q", path))
	}
	return problems, nil
}

// warn adds a warning for the client, once.
func (x *exchange) warn(text string) { x.warnings.add(text) }

// warnAll warns of unknown and duplicate fields. The error for duplicate keys in YAML has a line for each, and a header
// cannot contain line breaks.
//
// Source: k8s.io/apiserver v0.37.2 pkg/endpoints/handlers/rest.go parseYAMLWarnings.
func (x *exchange) warnAll(problems ...error) {
	for _, p := range problems {
		const list = "yaml: unmarshal errors:\n"
		lines, ok := strings.CutPrefix(strings.TrimPrefix(p.Error(), "error converting YAML to JSON: "), list)
		if !ok {
			x.warn(p.Error())
			continue
		}
		for line := range strings.SplitSeq(lines, "\n") {
			x.warn(strings.TrimSpace(line))
		}
	}
}

// managerOfUserAgent returns the field manager of a client that names none: its program's name.
//
// Source: k8s.io/apiserver pkg/endpoints/handlers/create.go prefixFromUserAgent.
func managerOfUserAgent(agent string) string {
	name, _, _ := strings.Cut(agent, "/")
	printable := strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return -1
	}, name)
	if len(printable) > validation.FieldManagerMaxLength {
		printable = printable[:validation.FieldManagerMaxLength]
	}
	return cmp.Or(printable, "unknown")
}
