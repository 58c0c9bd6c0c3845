package webhook

import (
	"errors"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	admissionv1beta1 "k8s.io/api/admission/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

var errNoResponse = errors.New("webhook response was absent")

// verify returns the response in a review, if the review answers the request uid.
//
// Source: k8s.io/apiserver v0.37.2 pkg/admission/plugin/webhook/request/admissionreview.go VerifyAdmissionResponse.
func verify(uid types.UID, mutates bool, review runtime.Object) (*admissionv1.AdmissionResponse, error) {
	switch review := review.(type) {
	case *admissionv1.AdmissionReview:
		return verifyV1(uid, mutates, review)
	case *admissionv1beta1.AdmissionReview:
		return verifyV1beta1(mutates, review)
	}
	return nil, fmt.Errorf("unexpected response type %T", review)
}

func verifyV1(uid types.UID, mutates bool,
	review *admissionv1.AdmissionReview,
) (*admissionv1.AdmissionResponse, error) {
	r, want := review.Response, admissionv1.SchemeGroupVersion.WithKind("AdmissionReview")
	if r == nil {
		return nil, errNoResponse
	}
	has, typed := len(r.Patch) > 0, r.PatchType != nil
	switch {
	case r.UID != uid:
		return nil, fmt.Errorf("expected response.uid=%q, got %q", uid, r.UID)
	case review.GroupVersionKind() != want:
		return nil, fmt.Errorf("expected webhook response of %v, got %v", want, review.GroupVersionKind())
	case !mutates && has:
		return nil, errors.New("validating webhook may not return response.patch")
	case !mutates && typed:
		return nil, errors.New("validating webhook may not return response.patchType")
	case has && !typed:
		return nil, errors.New("webhook returned response.patch but not response.patchType")
	case !has && typed:
		return nil, errors.New("webhook returned response.patchType but not response.patch")
	case typed && *r.PatchType == "":
		return nil, fmt.Errorf("webhook returned invalid response.patchType of %q", *r.PatchType)
	}
	return r, nil
}

// verifyV1beta1 is more lenient, as that version was. All its patches are JSON patches.
func verifyV1beta1(mutates bool, review *admissionv1beta1.AdmissionReview) (*admissionv1.AdmissionResponse, error) {
	r := review.Response
	if r == nil {
		return nil, errNoResponse
	}
	result := &admissionv1.AdmissionResponse{
		Allowed: r.Allowed, Result: r.Result, AuditAnnotations: r.AuditAnnotations, Warnings: r.Warnings,
	}
	if mutates && len(r.Patch) > 0 {
		result.Patch, result.PatchType = r.Patch, ptr.To(admissionv1.PatchTypeJSONPatch)
	}
	return result, nil
}
