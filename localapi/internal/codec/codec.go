package codec

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"fmt"
	"reflect"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metascheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Format is a wire encoding.
type Format int

// The formats.
const (
	JSON Format = iota
	YAML
	Protobuf
)

// ContentType returns the format's media type.
func (f Format) ContentType() string {
	switch f {
	case YAML:
		return runtime.ContentTypeYAML
	case Protobuf:
		return runtime.ContentTypeProtobuf
	default:
		return runtime.ContentTypeJSON
	}
}

// Codec encodes and decodes the objects of a scheme.
type Codec struct {
	scheme               *runtime.Scheme
	json, pretty, yaml   runtime.Serializer
	strictJSON, strictML runtime.Serializer
	proto                runtime.Serializer
}

// New returns the codec of the kinds in scheme. Other kinds are decoded as unstructured.
func New(scheme *runtime.Scheme) *Codec {
	of := func(o json.SerializerOptions) runtime.Serializer {
		o.StreamingCollectionsEncoding = !o.Yaml && !o.Pretty
		return json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, o)
	}
	return &Codec{
		scheme:     scheme,
		json:       of(json.SerializerOptions{}),
		pretty:     of(json.SerializerOptions{Pretty: true}),
		yaml:       of(json.SerializerOptions{Yaml: true}),
		strictJSON: of(json.SerializerOptions{Strict: true}),
		strictML:   of(json.SerializerOptions{Yaml: true, Strict: true}),
		proto: protobuf.NewSerializerWithOptions(scheme, scheme,
			protobuf.SerializerOptions{StreamingCollectionsEncoding: true}),
	}
}

// JSON returns the serializer of JSON. It ignores unknown and duplicate fields.
func (c *Codec) JSON() runtime.Serializer { return c.json }

// Encode returns obj, whose kind must be set, in format f. It does not change obj.
func (c *Codec) Encode(obj runtime.Object, f Format, pretty bool) ([]byte, error) {
	serializer := c.json
	switch {
	case f == Protobuf:
		serializer = c.proto
	case f == YAML:
		serializer = c.yaml
	case pretty:
		serializer = c.pretty
	}
	var b bytes.Buffer
	if err := serializer.Encode(obj, &b); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// HasProtobuf reports whether a kind has an encoding in protobuf. Kinds without a Go type have none. In the playground,
// which is built without that code, no kind has one.
func HasProtobuf(obj runtime.Object) bool {
	_, ok := obj.(interface{ Marshal() ([]byte, error) })
	return ok
}

// Stored returns obj as it is stored: protobuf, or JSON for kinds without it.
func (c *Codec) Stored(obj runtime.Object) ([]byte, error) {
	if !HasProtobuf(obj) {
		return c.Encode(obj, JSON, false)
	}
	return c.Encode(obj, Protobuf, false)
}

// Restore is the inverse of [Codec.Stored].
func (c *Codec) Restore(value []byte, into runtime.Object) (runtime.Object, error) {
	serializer := c.proto
	if !HasProtobuf(into) {
		serializer = c.json
	}
	obj, gvk, err := serializer.Decode(value, nil, into)
	if err != nil {
		return nil, err
	}
	obj.GetObjectKind().SetGroupVersionKind(*gvk)
	return obj, nil
}

// Body is a body that a client sent.
type Body struct {
	Bytes  []byte
	Format Format
}

// Decode decodes a body into an object of the given kind. If wantStrict, strict lists unknown and duplicate fields.
// Errors are API status errors.
func (c *Codec) Decode(b Body, kind schema.GroupVersionKind, into runtime.Object,
	wantStrict bool,
) (obj runtime.Object, strict []error, err error) {
	obj, strict, gvk, err := c.decode(b, kind, into, wantStrict)
	if apierrors.IsInvalid(err) {
		return nil, nil, err
	}
	if err != nil {
		return nil, nil, decodeError(err, kind, gvk, b.Bytes)
	}
	if gvk.GroupVersion() != kind.GroupVersion() {
		return nil, nil, apierrors.NewBadRequest(fmt.Sprintf(
			"the API version in the data (%s) does not match the expected API version (%s)", gvk.GroupVersion(),
			kind.GroupVersion()))
	}
	return obj, strict, nil
}

// DecodePatched is [Codec.Decode] for the result of a JSON patch. Errors are those of decoding.
func (c *Codec) DecodePatched(data []byte, kind schema.GroupVersionKind, into runtime.Object,
	wantStrict bool,
) (obj runtime.Object, strict []error, err error) {
	obj, strict, _, err = c.decode(Body{Bytes: data, Format: JSON}, kind, into, wantStrict)
	return obj, strict, err
}

// decode also returns the kind that the body states, or nil if that could not be read.
func (c *Codec) decode(b Body, kind schema.GroupVersionKind, into runtime.Object,
	wantStrict bool,
) (_ runtime.Object, strict []error, gvk *schema.GroupVersionKind, err error) {
	serializer := c.json
	switch {
	case b.Format == Protobuf:
		serializer = c.proto
	case b.Format == YAML && wantStrict:
		serializer = c.strictML
	case b.Format == YAML:
		serializer = c.yaml
	case wantStrict:
		serializer = c.strictJSON
	}
	obj, gvk, err := serializer.Decode(b.Bytes, &kind, into)
	if strictErr, ok := runtime.AsStrictDecodingError(err); ok && obj != nil {
		strict, err = strictErr.Errors(), nil
	}
	if o, ok := obj.(*optionalKind); ok {
		obj = o.Unstructured
	}
	if err != nil {
		return nil, nil, gvk, err
	}
	if gvk.Kind != kind.Kind {
		return nil, nil, gvk, wrongKind(obj, *gvk, kind)
	}
	if gvk.GroupVersion() == kind.GroupVersion() {
		obj.GetObjectKind().SetGroupVersionKind(kind)
	}
	return obj, strict, gvk, nil
}

// OptionalKind returns an object to decode into that gives u its content. Where a body states no kind or no apiVersion,
// u gets that of kind.
func OptionalKind(u *unstructured.Unstructured, kind schema.GroupVersionKind) runtime.Object {
	return &optionalKind{u, kind}
}

type optionalKind struct {
	*unstructured.Unstructured
	kind schema.GroupVersionKind
}

// SetUnstructuredContent implements [runtime.Unstructured]. Decoding calls it if it looks for unknown fields.
func (o *optionalKind) SetUnstructuredContent(content map[string]any) {
	o.Unstructured.SetUnstructuredContent(content)
	if o.GetKind() == "" {
		o.SetKind(o.kind.Kind)
	}
	if o.GetAPIVersion() == "" {
		o.SetAPIVersion(o.kind.GroupVersion().String())
	}
}

// UnmarshalJSON implements [encoding/json.Unmarshaler]. Decoding calls it otherwise.
func (o *optionalKind) UnmarshalJSON(text []byte) error {
	content := map[string]any{}
	if err := utiljson.Unmarshal(text, &content); err != nil {
		return err
	}
	o.SetUnstructuredContent(content)
	return nil
}

// CheckKind returns an error if obj, whose kind is set, is of another kind or version than the wanted one.
func CheckKind(obj runtime.Object, want schema.GroupVersionKind) error {
	if got := obj.GetObjectKind().GroupVersionKind(); got != want {
		return wrongKind(obj, got, want)
	}
	return nil
}

func wrongKind(obj runtime.Object, got, want schema.GroupVersionKind) error {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return otherCustomKind(u, got, want)
	}
	return otherKind(obj, want)
}

// otherKind returns the error for an object of a known kind other than the wanted one. The real server fails to convert
// it.
func otherKind(obj runtime.Object, want schema.GroupVersionKind) error {
	return fmt.Errorf("converting (%v) to (%s): unknown conversion", reflect.TypeOf(obj).Elem(), internalName(want))
}

// otherCustomKind is otherKind for a kind without a Go type. There is nothing to convert, so validation finds the
// error.
func otherCustomKind(obj *unstructured.Unstructured, got, want schema.GroupVersionKind) error {
	if got.Kind == want.Kind {
		return apierrors.NewInvalid(got.GroupKind(), obj.GetName(), field.ErrorList{
			field.Invalid(field.NewPath("apiVersion"), got.GroupVersion().String(),
				"must be "+want.GroupVersion().String()),
		})
	}
	return apierrors.NewInvalid(got.GroupKind(), obj.GetName(), field.ErrorList{
		field.Invalid(field.NewPath("kind"), got.Kind, "must be "+want.Kind),
	})
}

// internalName returns the name of the Go type that the real server converts a kind to.
func internalName(kind schema.GroupVersionKind) string {
	group, _, _ := strings.Cut(kind.Group, ".")
	return cmp.Or(group, "core") + "." + kind.Kind
}

// decodeError words a decoding error as the real server does.
//
// Source: k8s.io/apiserver pkg/endpoints/handlers/rest.go transformDecodeError.
func decodeError(err error, want schema.GroupVersionKind, got *schema.GroupVersionKind, body []byte) error {
	if got != nil && got.Kind != "" {
		return apierrors.NewBadRequest(
			fmt.Sprintf("%s in version %q cannot be handled as a %s: %v", got.Kind, got.Version, want.Kind, err),
		)
	}
	return apierrors.NewBadRequest(
		fmt.Sprintf("the object provided is unrecognized (must be of type %s): %v (%s)", want.Kind, err, summary(body)),
	)
}

func summary(body []byte) string {
	const longest = 30
	if len(body) == 0 {
		return "<empty>"
	}
	show := func(b []byte) string { return hex.EncodeToString(b) }
	if body[0] == '{' {
		show = func(b []byte) string { return string(b) }
	}
	if len(body) > longest {
		return show(body[:longest]) + " ..."
	}
	return show(body)
}

// StrictError returns the bad request for unknown and duplicate fields.
func StrictError(kind schema.GroupVersionKind, problems []error) error {
	return decodeError(runtime.NewStrictDecodingError(problems), kind, &kind, nil)
}

// IsUnstructured reports whether a kind has no Go type.
func IsUnstructured(obj runtime.Object) bool {
	_, ok := obj.(*unstructured.Unstructured)
	return ok
}

// Scheme returns the scheme that the codec was made with.
func (c *Codec) Scheme() *runtime.Scheme { return c.scheme }

// Status returns err as the Status object to send. An error that is not an API status has no reason.
//
// Source: k8s.io/apiserver pkg/endpoints/handlers/responsewriters/status.go ErrorToAPIStatus.
func Status(err error) *metav1.Status {
	var status metav1.Status
	if s, ok := err.(apierrors.APIStatus); ok {
		status = s.Status()
	} else {
		status = metav1.Status{Message: err.Error()}
	}
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	status.Status = cmp.Or(status.Status, metav1.StatusFailure)
	status.Code = cmp.Or(status.Code, 500)
	return &status
}

// DeleteOptions parses the body of a delete. It accepts several group versions: clients send meta.k8s.io/v1, v1 and
// that of the resource. Errors: BadRequest.
//
// Source: k8s.io/apiserver v0.37.2 pkg/endpoints/handlers/delete.go DeleteResource.
func DeleteOptions(b Body) (metav1.DeleteOptions, error) {
	var o metav1.DeleteOptions
	kind := metav1.SchemeGroupVersion.WithKind("DeleteOptions")
	info, ok := runtime.SerializerInfoForMediaType(metascheme.Codecs.SupportedMediaTypes(), b.Format.ContentType())
	if !ok {
		return o, UnsupportedMediaType(runtime.ContentTypeJSON, runtime.ContentTypeYAML, runtime.ContentTypeProtobuf)
	}
	decoder := metascheme.Codecs.DecoderToVersion(info.Serializer, kind.GroupVersion())
	obj, _, err := decoder.Decode(b.Bytes, &kind, &o)
	switch {
	case err != nil:
		return o, apierrors.NewBadRequest(err.Error())
	case obj != &o:
		return o, apierrors.NewBadRequest("decoded object cannot be converted to DeleteOptions")
	}
	return o, nil
}
