package conversion

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/manager/webhook/internal/panics"
	"github.com/flyball-dev/flyball/manager/webhook/internal/review"
)

// Webhook serves ConversionReviews. It converts objects of the kinds that were registered.
//
// Concurrency: all methods may be called from any goroutine.
type Webhook struct {
	scheme *runtime.Scheme
	codecs serializer.CodecFactory

	mu         sync.RWMutex
	converters map[schema.GroupKind]Converter
}

// New returns a webhook that decodes objects by the scheme. It converts nothing before Register or RegisterHub.
func New(scheme *runtime.Scheme) *Webhook {
	return &Webhook{
		scheme: scheme, codecs: serializer.NewCodecFactory(scheme), converters: map[schema.GroupKind]Converter{},
	}
}

// Register makes c convert the objects of a kind.
//
// Errors: the kind has a converter already.
func (w *Webhook) Register(kind schema.GroupKind, c Converter) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, taken := w.converters[kind]; taken {
		return fmt.Errorf("conversion of %s: it has a converter already", kind)
	}
	w.converters[kind] = c
	return nil
}

// RegisterHub makes the types of obj's kind convert themselves, through their hub. It does nothing if they do so
// already.
//
// Errors: see [IsConvertible]; the types have no methods of [Hub] and [Convertible].
func (w *Webhook) RegisterHub(obj runtime.Object) error {
	c, err := hubConverterOf(w.scheme, obj)
	if err != nil {
		return err
	}
	kinds, _, err := w.scheme.ObjectKinds(obj)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, taken := w.converters[kinds[0].GroupKind()]; !taken {
		w.converters[kinds[0].GroupKind()] = c
	}
	return nil
}

func (w *Webhook) converter(kind schema.GroupKind) (Converter, error) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if c := w.converters[kind]; c != nil {
		return c, nil
	}
	return nil, fmt.Errorf("%s has no converter: call NewWebhookManagedBy for it", kind)
}

// convertAll converts the objects of a request. An error names the object that it is about.
func (w *Webhook) convertAll(ctx context.Context, wanted string, objects []runtime.RawExtension) (
	all []runtime.RawExtension, err error,
) {
	version, err := schema.ParseGroupVersion(wanted)
	if err != nil || version.Version == "" {
		return nil, fmt.Errorf("desiredAPIVersion %q is not a group and a version", wanted)
	}
	all = make([]runtime.RawExtension, 0, len(objects))
	for i, raw := range objects {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("converted %d of %d objects: %w", i, len(objects), err)
		}
		converted, err := w.convertRaw(ctx, version, raw.Raw)
		if err != nil {
			return nil, fmt.Errorf("convert %s to %s: %w", describe(i, raw.Raw), wanted, err)
		}
		all = append(all, runtime.RawExtension{Raw: converted})
	}
	return all, nil
}

// describe names an object of a request, for errors.
func describe(i int, raw []byte) string {
	var object struct {
		APIVersion, Kind string
		Metadata         struct{ Namespace, Name string }
	}
	if json.Unmarshal(raw, &object) != nil || object.Metadata.Name == "" {
		return fmt.Sprintf("object %d", i)
	}
	name := object.Metadata.Name
	if object.Metadata.Namespace != "" {
		name = object.Metadata.Namespace + "/" + name
	}
	return fmt.Sprintf("%s %s of %s", object.Kind, name, object.APIVersion)
}

func (w *Webhook) convertRaw(ctx context.Context, wanted schema.GroupVersion, raw []byte) (_ []byte, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = panics.Recovered(ctx, v)
		}
	}()
	src, kind, err := w.codecs.UniversalDeserializer().Decode(raw, nil, nil)
	if err != nil {
		return nil, err
	}
	if kind.GroupVersion() == wanted {
		return raw, nil
	}
	if kind.Group != wanted.Group {
		return nil, fmt.Errorf("it is of group %q", kind.Group)
	}
	converter, err := w.converter(kind.GroupKind())
	if err != nil {
		return nil, err
	}
	dst, err := w.scheme.New(wanted.WithKind(kind.Kind))
	if err != nil {
		return nil, err
	}
	dst.GetObjectKind().SetGroupVersionKind(wanted.WithKind(kind.Kind)) // converters choose by it
	if err := copyMetadata(src, dst); err != nil {
		return nil, err
	}
	if err := converter.ConvertObject(ctx, src, dst); err != nil {
		return nil, err
	}
	dst.GetObjectKind().SetGroupVersionKind(wanted.WithKind(kind.Kind)) // a conversion may have copied TypeMeta
	return json.Marshal(dst)
}

// copyMetadata copies the metadata of src to dst, an empty object of another Go type.
func copyMetadata(src, dst runtime.Object) error {
	from, ok := src.(metav1.ObjectMetaAccessor)
	if !ok {
		return fmt.Errorf("%T has no metadata", src)
	}
	to, ok := dst.(metav1.ObjectMetaAccessor)
	if !ok {
		return fmt.Errorf("%T has no metadata", dst)
	}
	typed, ok := from.GetObjectMeta().(*metav1.ObjectMeta)
	target, ok2 := to.GetObjectMeta().(*metav1.ObjectMeta)
	if !ok || !ok2 {
		return nil // not the API's own struct, so the conversion must copy the metadata
	}
	typed.DeepCopyInto(target)
	return nil
}

// conversionReview is the ConversionReview of apiextensions.k8s.io. Versions v1 and v1beta1 have these same fields.
//
// Source: k8s.io/apiextensions-apiserver v0.37.2 pkg/apis/apiextensions/v1/types.go.
type conversionReview struct {
	metav1.TypeMeta `json:",inline"`
	Request         *conversionRequest  `json:"request,omitempty"`
	Response        *conversionResponse `json:"response,omitempty"`
}

type conversionRequest struct {
	UID               types.UID              `json:"uid"`
	DesiredAPIVersion string                 `json:"desiredAPIVersion"`
	Objects           []runtime.RawExtension `json:"objects"`
}

type conversionResponse struct {
	UID              types.UID              `json:"uid"`
	ConvertedObjects []runtime.RawExtension `json:"convertedObjects"`
	Result           metav1.Status          `json:"result"`
}

// maxBody is the maximum size of a request. A list is converted in one request, so the limit is much larger than that
// of an object. It only keeps one request from using all memory.
const maxBody = 128 << 20

var versions = []string{"apiextensions.k8s.io/v1", "apiextensions.k8s.io/v1beta1"}

// ServeHTTP answers a ConversionReview of version v1 or v1beta1, in the same version. The context ends after the
// timeout that the API server put into the URL.
func (w *Webhook) ServeHTTP(out http.ResponseWriter, in *http.Request) {
	ctx, cancel := review.Context(in)
	defer cancel()
	body, release, err := review.Read(in, maxBody)
	if err != nil {
		review.Refuse(out, err)
		return
	}
	defer release()
	asked, err := decodeReview(body)
	if err != nil {
		review.Refuse(out, err)
		return
	}
	response := &conversionResponse{UID: asked.Request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
	log := klog.FromContext(ctx).WithValues("requestID", asked.Request.UID)
	response.ConvertedObjects, err = w.convertAll(klog.NewContext(ctx, log), asked.Request.DesiredAPIVersion,
		asked.Request.Objects)
	if err != nil {
		log.Error(err, "Conversion failed")
		response.Result = metav1.Status{Status: metav1.StatusFailure, Message: err.Error()}
	}
	review.Answer(out, conversionReview{TypeMeta: asked.TypeMeta, Response: response})
}

// decodeReview returns the review in a body. A kind, a version and a uid, which an API server always sends, may be
// missing, because requests that are written for tests often lack them.
func decodeReview(body []byte) (asked conversionReview, err error) {
	if err := json.Unmarshal(body, &asked); err != nil {
		return asked, fmt.Errorf("the body is not a ConversionReview: %w", err)
	}
	asked.Kind, asked.APIVersion = cmp.Or(asked.Kind, "ConversionReview"), cmp.Or(asked.APIVersion, versions[0])
	switch {
	case asked.Kind != "ConversionReview":
		return asked, fmt.Errorf("the body is of kind %q, want ConversionReview", asked.Kind)
	case !slices.Contains(versions, asked.APIVersion):
		return asked, fmt.Errorf("the ConversionReview has apiVersion %q, want one of %q", asked.APIVersion, versions)
	case asked.Request == nil:
		return asked, errors.New("the ConversionReview has no request")
	}
	return asked, nil
}
