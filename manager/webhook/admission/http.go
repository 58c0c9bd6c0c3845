package admission

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/manager/webhook/internal/review"
)

// maxBody is the maximum size of a request: two objects of the largest size that an API server takes, which is 3 MiB,
// and 1 MiB for everything else.
//
// Source: k8s.io/apiserver v0.37.2 pkg/server/config.go, MaxRequestBodyBytes.
const maxBody = 7 << 20

// ServeHTTP answers an AdmissionReview of version v1 or v1beta1, in the same version. The context ends after the
// timeout that the API server put into the URL.
func (w *Webhook) ServeHTTP(out http.ResponseWriter, in *http.Request) {
	ctx, cancel := review.Context(in)
	defer cancel()
	if w.WithContextFunc != nil {
		ctx = w.WithContextFunc(ctx, in)
	}
	body, release, err := review.Read(in, maxBody)
	if err != nil {
		review.Refuse(out, err)
		return
	}
	defer release()
	r, apiVersion, err := decodeReview(body)
	if err != nil {
		review.Refuse(out, err)
		return
	}
	answer := admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: apiVersion, Kind: "AdmissionReview"},
		Response: w.answer(ctx, r),
	}
	review.Answer(out, answer)
}

func (w *Webhook) answer(ctx context.Context, r Request) *admissionv1.AdmissionResponse {
	response := w.Handle(ctx, r)
	return &response.AdmissionResponse
}

// decodeReview returns the request of a review and the version in which to answer. The two versions of the API have the
// same fields. A kind, a version and a uid, which an API server always sends, may be missing, because requests that are
// written for tests often lack them.
func decodeReview(body []byte) (Request, string, error) {
	var asked admissionv1.AdmissionReview
	if err := json.Unmarshal(body, &asked); err != nil {
		return Request{}, "", fmt.Errorf("the body is not an AdmissionReview: %w", err)
	}
	asked.APIVersion = cmp.Or(asked.APIVersion, "admission.k8s.io/v1")
	switch {
	case asked.Kind != "AdmissionReview" && asked.Kind != "":
		return Request{}, "", fmt.Errorf("the body is of kind %q, want AdmissionReview", asked.Kind)
	case asked.APIVersion != "admission.k8s.io/v1" && asked.APIVersion != "admission.k8s.io/v1beta1":
		return Request{}, "", fmt.Errorf(
			"the AdmissionReview has apiVersion %q, want admission.k8s.io/v1 or admission.k8s.io/v1beta1",
			asked.APIVersion,
		)
	case asked.Request == nil:
		return Request{}, "", errors.New("the AdmissionReview has no request")
	}
	return Request{*asked.Request}, asked.APIVersion, nil
}
