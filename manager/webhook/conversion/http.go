package conversion

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/manager/webhook/internal/review"
)

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

// maxBody is the maximum size of a request. A list is converted in one request, so the limit is no object's: it keeps
// one request from taking all memory.
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
// missing: a request that somebody writes for a test often lacks them.
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
