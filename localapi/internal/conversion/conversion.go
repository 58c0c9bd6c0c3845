package conversion

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsv1beta1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/localapi/internal/webhookclient"
)

// Webhook is the conversion webhook of a definition.
type Webhook struct {
	clients  *webhookclient.Clients
	target   webhookclient.Target
	versions []string // of reviews, in the order of preference
}

// Of returns the conversion webhook of a definition, or nil if it has none.
func Of(crd *apiextensionsv1.CustomResourceDefinition, clients *webhookclient.Clients) *Webhook {
	c := crd.Spec.Conversion
	if c == nil || c.Strategy != apiextensionsv1.WebhookConverter || c.Webhook == nil || c.Webhook.ClientConfig == nil {
		return nil
	}
	config := c.Webhook.ClientConfig
	t := webhookclient.Target{URL: ptr.Deref(config.URL, "")}
	if len(bytes.TrimSpace(config.CABundle)) > 0 {
		t.CABundle = config.CABundle
	}
	if s := config.Service; s != nil {
		t.Service = &webhookclient.Service{
			Namespace: s.Namespace, Name: s.Name, Port: ptr.Deref(s.Port, 443), Path: ptr.Deref(s.Path, ""),
		}
	}
	return &Webhook{clients, t, c.Webhook.ConversionReviewVersions}
}

// codec encodes and decodes reviews.
var codec = webhookclient.Codec(func(s *runtime.Scheme) error {
	return errors.Join(apiextensionsv1.AddToScheme(s), apiextensionsv1beta1.AddToScheme(s))
}, apiextensionsv1.SchemeGroupVersion, apiextensionsv1beta1.SchemeGroupVersion)

// Convert converts objects of other versions to a version, in one review. It does not change them. Errors name the kind
// of the first object.
func (w *Webhook) Convert(ctx context.Context, objects []*unstructured.Unstructured,
	to schema.GroupVersion,
) ([]*unstructured.Unstructured, error) {
	uid, kind := uuid.NewUUID(), objects[0].GroupVersionKind()
	review, answer, err := w.review(uid, objects, to)
	if err != nil {
		return nil, err
	}
	client, err := w.clients.For(w.target, codec)
	if err != nil {
		return nil, err
	}
	if err := client.Post().Body(review).Do(ctx).Into(answer); err != nil {
		return nil, fmt.Errorf("conversion webhook for %v failed: %w", kind, err)
	}
	converted, err := responseOf(uid, answer)
	if err != nil {
		return nil, fmt.Errorf("conversion webhook for %v failed: %w", kind, err)
	}
	if len(converted) != len(objects) {
		return nil, fmt.Errorf("conversion webhook for %v returned %d objects, expected %d", kind, len(converted),
			len(objects))
	}
	result := make([]*unstructured.Unstructured, len(objects))
	for i, raw := range converted {
		if result[i], err = accept(objects[i], raw, to); err != nil {
			return nil, err
		}
	}
	return result, nil
}

// review returns the review to send, in the first version that the webhook accepts, and an empty one for the answer.
func (w *Webhook) review(uid types.UID, objects []*unstructured.Unstructured,
	to schema.GroupVersion,
) (review, answer runtime.Object, err error) {
	raw := make([]runtime.RawExtension, len(objects))
	for i, o := range objects {
		raw[i].Object = o
	}
	for _, v := range w.versions {
		switch v {
		case apiextensionsv1.SchemeGroupVersion.Version:
			return &apiextensionsv1.ConversionReview{Request: &apiextensionsv1.ConversionRequest{
				UID: uid, DesiredAPIVersion: to.String(), Objects: raw,
			}, Response: &apiextensionsv1.ConversionResponse{}}, &apiextensionsv1.ConversionReview{}, nil
		case apiextensionsv1beta1.SchemeGroupVersion.Version:
			return &apiextensionsv1beta1.ConversionReview{Request: &apiextensionsv1beta1.ConversionRequest{
				UID: uid, DesiredAPIVersion: to.String(), Objects: raw,
			}, Response: &apiextensionsv1beta1.ConversionResponse{}}, &apiextensionsv1beta1.ConversionReview{}, nil
		}
	}
	return nil, nil, errors.New("no supported conversion review versions")
}

// responseOf returns the objects in an answer to the request uid. The older version is not checked as strictly.
func responseOf(uid types.UID, answer runtime.Object) ([]runtime.RawExtension, error) {
	none := errors.New("no response provided")
	switch r := answer.(type) {
	case *apiextensionsv1.ConversionReview:
		want := apiextensionsv1.SchemeGroupVersion.WithKind("ConversionReview")
		switch {
		case r.GroupVersionKind() != want:
			return nil, fmt.Errorf("expected webhook response of %v, got %v", want, r.GroupVersionKind())
		case r.Response == nil:
			return nil, none
		case r.Response.UID != uid:
			return nil, fmt.Errorf("expected response.uid=%q, got %q", uid, r.Response.UID)
		}
		return r.Response.ConvertedObjects, failure(r.Response.Result)
	case *apiextensionsv1beta1.ConversionReview:
		if r.Response == nil {
			return nil, none
		}
		return r.Response.ConvertedObjects, failure(r.Response.Result)
	}
	return nil, fmt.Errorf("unrecognized response type: %T", answer)
}

func failure(s metav1.Status) error {
	switch {
	case s.Status == metav1.StatusSuccess:
		return nil
	case s.Message != "":
		return errors.New(s.Message)
	}
	return fmt.Errorf("response.result.status was '%s', not 'Success'", s.Status)
}

// accept returns what the webhook made of in, with the metadata of in: only labels and annotations may be converted.
func accept(in *unstructured.Unstructured, raw runtime.RawExtension,
	to schema.GroupVersion,
) (*unstructured.Unstructured, error) {
	kind := in.GroupVersionKind()
	out := &unstructured.Unstructured{}
	if err := out.UnmarshalJSON(raw.Raw); err != nil {
		return nil, err
	}
	const wrong = "conversion webhook for %v returned invalid object at index 0: invalid %s (expected %v, received %v)"
	got := out.GroupVersionKind()
	switch {
	case got.GroupVersion() != to:
		return nil, fmt.Errorf(wrong, kind, "groupVersion", to, got.GroupVersion())
	case got.Kind != kind.Kind:
		return nil, fmt.Errorf(wrong, kind, "kind", kind.Kind, got.Kind)
	}
	for _, same := range []struct {
		what    string
		in, out any
	}{
		{"name", in.GetName(), out.GetName()},
		{"namespace", in.GetNamespace(), out.GetNamespace()},
		{"UID", in.GetUID(), out.GetUID()},
	} {
		if same.in != same.out {
			return nil, fmt.Errorf("conversion webhook for %v returned invalid object: must have the same %s: %v != %v",
				kind, same.what, same.in, same.out)
		}
	}
	if err := restoreMetadata(in, out); err != nil {
		return nil, fmt.Errorf("conversion webhook for %v returned invalid metadata: %w", kind, err)
	}
	return out, nil
}

// restoreMetadata replaces the metadata of out by that of in, but for labels and annotations.
func restoreMetadata(in, out *unstructured.Unstructured) error {
	value, ok := out.Object["metadata"]
	if !ok {
		return fmt.Errorf("missing metadata in converted object")
	}
	said, ok := value.(map[string]any)
	if !ok {
		return fmt.Errorf("invalid metadata of type %T in converted object", value)
	}
	original, _ := in.Object["metadata"].(map[string]any)
	restored := runtime.DeepCopyJSON(original)
	out.Object["metadata"] = restored
	for name, validate := range map[string]func(map[string]string, *field.Path) field.ErrorList{
		"labels": metavalidation.ValidateLabels, "annotations": apivalidation.ValidateAnnotations,
	} {
		value := said[name]
		if value == nil {
			delete(restored, name)
			continue
		}
		texts, err := stringsIn(name, value)
		if err != nil {
			return err
		}
		before, _ := stringsIn(name, original[name])
		path := field.NewPath("metadata", map[string]string{"labels": "labels", "annotations": "annotation"}[name])
		if errs := validate(texts, path); !maps.Equal(texts, before) && len(errs) > 0 {
			return errs.ToAggregate()
		}
		restored[name] = value
	}
	return nil
}

func stringsIn(name string, value any) (map[string]string, error) {
	m, ok := value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("invalid metadata.%s of type %T in converted object", name, value)
	}
	texts := make(map[string]string, len(m))
	for k, v := range m {
		text, ok := v.(string)
		if !ok {
			return nil, fmt.Errorf("metadata.%s[%s] must be a string, but is %T in converted object", name, k, v)
		}
		texts[k] = text
	}
	return texts, nil
}
