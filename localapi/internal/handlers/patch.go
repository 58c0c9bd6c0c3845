package handlers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/mergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/flyball-dev/flyball/internal/jsonpatch"
	"github.com/flyball-dev/flyball/localapi/internal/codec"
	"github.com/flyball-dev/flyball/localapi/internal/registry"
	"github.com/flyball-dev/flyball/localapi/internal/resource"
)

// patchTimeout ends a patch that takes longer, whatever timeout the client set. It also ends a write that waits for
// admission.
//
// Source: k8s.io/apiserver v0.37.2 pkg/endpoints/handlers/patch.go, requestTimeoutUpperBound.
const patchTimeout = 34 * time.Second

// timeLimit returns how long the request may take.
func (x *exchange) timeLimit() time.Duration {
	if d, err := time.ParseDuration(x.query.Get("timeout")); err == nil && d > 0 {
		return min(d, patchTimeout)
	}
	return patchTimeout
}

// patch handles a PATCH of the object or of its status.
func (x *exchange) patch(ctx context.Context, part registry.Part) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, patchTimeout)
	defer cancel()
	patchType, err := x.patchType(x.res.New())
	if err != nil {
		return answer{}, err
	}
	o, force, err := x.patchOptions(patchType)
	if err != nil {
		return answer{}, err
	}
	if err := x.readablePatch(patchType); err != nil {
		return answer{}, err
	}
	change := registry.Change{Part: part, WriteOptions: o, AllowCreate: part == registry.Main &&
		patchType == types.ApplyYAMLPatchType}
	if patchType == types.ApplyYAMLPatchType {
		change.Next, err = x.applyConfiguration(ctx, part, o.Manager, force)
		if err != nil {
			return answer{}, err
		}
		return x.change(ctx, change)
	}
	change.Next = func(old runtime.Object) (runtime.Object, error) {
		obj, err := x.patched(ctx, patchType, old, x.res.New())
		if err != nil {
			return nil, err
		}
		if err := x.checkName(resource.Meta(obj)); err != nil {
			return nil, err
		}
		x.applyDefaults(obj)
		return x.api.Managers.Update(ctx, x.res.Written(subresourceOf(part)), old, obj, o.Manager)
	}
	return x.change(ctx, change)
}

// patchType returns the kind of the patch. Errors: UnsupportedMediaType.
func (x *exchange) patchType(target runtime.Object) (types.PatchType, error) {
	supported := []string{string(types.JSONPatchType), string(types.MergePatchType), string(types.ApplyYAMLPatchType)}
	if !codec.IsUnstructured(target) {
		supported = slices.Insert(supported, 2, string(types.StrategicMergePatchType))
	}
	mediaType, _, err := mime.ParseMediaType(x.r.Header.Get("Content-Type"))
	if err == nil && slices.Contains(supported, mediaType) {
		return types.PatchType(mediaType), nil
	}
	if codec.IsUnstructured(target) {
		return "", codec.UnsupportedMediaType(supported...)
	}
	return "", serviceError(http.StatusUnsupportedMediaType)
}

// readablePatch rejects a patch that cannot be parsed, whatever it applies to.
//
// Source: k8s.io/apiserver pkg/endpoints/handlers/patch.go validateAndTranscodePatch.
func (x *exchange) readablePatch(t types.PatchType) error {
	if t != types.ApplyYAMLPatchType {
		if !json.Valid(x.body) {
			return apierrors.NewBadRequest("invalid JSON patch")
		}
		return nil
	}
	if _, err := utilyaml.ToJSON(x.body); err != nil {
		return apierrors.NewBadRequest(fmt.Sprintf("error encoding patch: %v", err))
	}
	return nil
}

// applyConfiguration returns the change that server-side apply makes.
//
// Source: k8s.io/apiserver pkg/endpoints/handlers/patch.go applyPatcher.
func (x *exchange) applyConfiguration(ctx context.Context, part registry.Part, manager string,
	force bool,
) (func(runtime.Object) (runtime.Object, error), error) {
	applied, err := x.appliedConfiguration()
	if err != nil {
		return nil, err
	}
	return func(old runtime.Object) (runtime.Object, error) {
		creating := old == nil
		if creating {
			old = x.res.New()
		}
		obj, err := x.api.Managers.Apply(ctx, x.res.Written(subresourceOf(part)), old, registry.Application{
			Configuration: applied.DeepCopy(), Manager: manager, Force: force,
		})
		if err != nil {
			return nil, err
		}
		m := resource.Meta(obj)
		if uid := m.GetUID(); creating && uid != "" {
			return nil, apierrors.NewConflict(x.res.Definition.GroupResource(), x.info.Name,
				fmt.Errorf("uid mismatch: the provided object specified uid %s, and no existing object was found", uid))
		}
		return obj, x.checkName(m)
	}, nil
}

// appliedConfiguration parses the body of a server-side apply.
func (x *exchange) appliedConfiguration() (*unstructured.Unstructured, error) {
	applied := &unstructured.Unstructured{Object: map[string]any{}}
	if err := yaml.Unmarshal(x.body, &applied.Object, numbers); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
	}
	// Whole numbers become int64, as in the rest of the server: a scale needs that.
	if err := utiljson.ConvertMapNumbers(applied.Object, 0); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
	}
	if x.strictness() == metav1.FieldValidationIgnore {
		return applied, nil
	}
	if err := yaml.UnmarshalStrict(x.body, &map[string]any{}); err != nil {
		if x.strictness() == metav1.FieldValidationStrict {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("error strict decoding patch: %v", err))
		}
		x.warnAll(err)
	}
	return applied, nil
}

// numbers makes a decoder keep the text of numbers.
func numbers(d *json.Decoder) *json.Decoder {
	d.UseNumber()
	return d
}

// patched applies the body, a patch of the given type, to old and decodes the result into the empty object into.
func (x *exchange) patched(ctx context.Context, t types.PatchType, old, into runtime.Object) (runtime.Object, error) {
	if t == types.StrategicMergePatchType {
		return x.strategic(old, into)
	}
	kind := old.GetObjectKind().GroupVersionKind()
	before, err := x.api.Codec.Encode(old, codec.JSON, false)
	if err != nil {
		return nil, err
	}
	after, problems, err := x.jsonPatched(ctx, t, before)
	if err != nil {
		return nil, err
	}
	obj, more, err := x.api.Codec.DecodePatched(after, kind, into, x.strictness() != metav1.FieldValidationIgnore)
	if err != nil {
		return nil, invalidPatch(string(after), err)
	}
	dropped, err := x.coerce(obj)
	if err != nil {
		return nil, invalidPatch(string(after), err)
	}
	return obj, x.judgeStrictly(string(after), slices.Concat(problems, more, dropped))
}

// jsonPatchOp is an operation of a JSON patch. The name of the type appears in an error message.
type jsonPatchOp struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	From  string `json:"from"`
	Value any    `json:"value"`
}

// jsonPatched applies a JSON patch or a JSON merge patch. problems lists the unknown and duplicate fields of the patch.
func (x *exchange) jsonPatched(ctx context.Context, t types.PatchType,
	before []byte,
) (after []byte, problems []error, err error) {
	if t == types.JSONPatchType {
		var operations []jsonPatchOp
		if problems, err = kjson.UnmarshalStrict(x.body, &operations); err != nil {
			return nil, nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
		}
		for i, p := range problems {
			problems[i] = fmt.Errorf("json patch %w", p)
		}
		patch, err := jsonpatch.Decode(x.body)
		if err != nil {
			return nil, nil, apierrors.NewBadRequest(err.Error())
		}
		after, err = patch.Apply(ctx, before)
		return after, problems, unapplied(ctx, err)
	}
	if problems, err = kjson.UnmarshalStrict(x.body, &map[string]any{}); err != nil {
		return nil, nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
	}
	if after, err = jsonpatch.Merge(before, x.body); err != nil {
		return nil, nil, apierrors.NewBadRequest(err.Error())
	}
	return after, problems, nil
}

// unapplied is the answer for a JSON patch that can be parsed, but not applied.
func unapplied(ctx context.Context, err error) error {
	var many jsonpatch.TooManyError
	switch {
	case err == nil || ctx.Err() != nil:
		return err
	case errors.As(err, &many):
		return apierrors.NewRequestEntityTooLargeError(err.Error())
	}
	return unprocessable(err)
}

func unprocessable(err error) error {
	return apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "",
		err.Error(), 0, false)
}

// strategic applies a strategic merge patch.
//
// Source: k8s.io/apiserver pkg/endpoints/handlers/patch.go strategicPatchObject, interpretStrategicMergePatchError.
func (x *exchange) strategic(old, into runtime.Object) (runtime.Object, error) {
	before, err := runtime.DefaultUnstructuredConverter.ToUnstructured(old)
	if err != nil {
		return nil, err
	}
	patch := map[string]any{}
	problems, err := kjson.UnmarshalStrict(x.body, &patch)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	after, err := mergeStrategically(before, patch, into)
	switch {
	case errors.Is(err, mergepatch.ErrBadJSONDoc), errors.Is(err, mergepatch.ErrBadPatchFormatForPrimitiveList),
		errors.Is(err, mergepatch.ErrBadPatchFormatForRetainKeys),
		errors.Is(err, mergepatch.ErrBadPatchFormatForSetElementOrderList),
		errors.Is(err, mergepatch.ErrUnsupportedStrategicMergePatchFormat):
		return nil, apierrors.NewBadRequest(err.Error())
	case errors.Is(err, mergepatch.ErrNoListOfLists), errors.Is(err, mergepatch.ErrPatchContentNotMatchRetainKeys):
		return nil, unprocessable(err)
	case err != nil:
		return nil, err
	}
	strict := x.strictness() != metav1.FieldValidationIgnore
	err = runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(after, into, strict)
	if strictErr, ok := runtime.AsStrictDecodingError(err); ok {
		problems, err = append(problems, strictErr.Errors()...), nil
	}
	if err != nil {
		return nil, invalidPatch(fmt.Sprintf("%+v", patch), err)
	}
	into.GetObjectKind().SetGroupVersionKind(old.GetObjectKind().GroupVersionKind())
	return into, x.judgeStrictly(fmt.Sprintf("%+v", patch), problems)
}

// mergeStrategically merges with the library, which panics if a directive has an unexpected type.
func mergeStrategically(before, patch map[string]any, schema runtime.Object) (after map[string]any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = apierrors.NewBadRequest(fmt.Sprintf("the strategic merge patch does not apply: %v", p))
		}
	}()
	return strategicpatch.StrategicMergeMapPatch(before, patch, schema)
}

// judgeStrictly turns unknown and duplicate fields into an error or warnings, as the client asked.
func (x *exchange) judgeStrictly(patch string, problems []error) error {
	switch {
	case len(problems) == 0 || x.strictness() == metav1.FieldValidationIgnore:
	case x.strictness() == metav1.FieldValidationStrict:
		return invalidPatch(patch, runtime.NewStrictDecodingError(problems))
	default:
		x.warnAll(problems...)
	}
	return nil
}

func invalidPatch(patch string, err error) error {
	return apierrors.NewInvalid(schema.GroupKind{}, "",
		field.ErrorList{field.Invalid(field.NewPath("patch"), patch, err.Error())})
}
