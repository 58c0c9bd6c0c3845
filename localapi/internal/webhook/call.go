package webhook

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionv1beta1 "k8s.io/api/admission/v1beta1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/localapi/internal/admission"
	"github.com/flyball-dev/flyball/localapi/internal/expressions"
	"github.com/flyball-dev/flyball/localapi/internal/rbac"
	"github.com/flyball-dev/flyball/localapi/internal/webhookclient"
)

// errTimeout is the answer to a request whose time is over.
var errTimeout = apierrors.NewTimeoutError("request did not complete within requested timeout", 0)

// callError is a failed call. The webhook's failure policy decides what it means.
type callError struct {
	webhook string
	reason  error
}

func (e *callError) Error() string {
	return fmt.Sprintf("failed calling webhook %q: %v", e.webhook, e.reason)
}

func (e *callError) Unwrap() error { return e.reason }

func (h *hook) failed(reason error) error { return &callError{h.Name, reason} }

// judge returns the error for the client after a call that ended with err.
func (h *hook) judge(ctx context.Context, err error) error {
	var failed *callError
	if !errors.As(err, &failed) {
		return err
	}
	if !h.ignores() {
		return apierrors.NewInternalError(err)
	}
	klog.FromContext(ctx).Info("A webhook failed and is ignored, as its failure policy says", "webhook", h.Name,
		"configuration", h.configuration, "reason", failed.reason)
	if ctx.Err() != nil {
		return errTimeout
	}
	return nil
}

// reviewCodec encodes and decodes reviews.
var reviewCodec = webhookclient.Codec(func(s *runtime.Scheme) error {
	return errors.Join(admissionv1.AddToScheme(s), admissionv1beta1.AddToScheme(s))
}, admissionv1beta1.SchemeGroupVersion, admissionv1.SchemeGroupVersion)

// invocation is a write as a webhook gets it.
type invocation struct {
	attributes *admission.Attributes
	as         admission.Equivalent
	versions   *versions
	mutates    bool
}

// response is what a webhook said in either version of a review.
type response struct {
	patch     []byte
	patchType admissionv1.PatchType
}

// call calls the webhook. Errors: *callError; an API status error if the webhook refuses the write.
func (h *hook) call(ctx context.Context, i invocation) (response, error) {
	if err := h.supportsDryRun(i.attributes); err != nil {
		return response{}, err
	}
	request := i.request()
	review, answer, err := reviews(h.AdmissionReviewVersions, request)
	if err != nil {
		return response{}, h.failed(fmt.Errorf("could not create admission objects: %w", err))
	}
	if err := h.post(ctx, review, answer); err != nil {
		return response{}, err
	}
	said, err := verify(request.UID, i.mutates, answer)
	if err != nil {
		return response{}, h.failed(fmt.Errorf("received invalid webhook response: %w", err))
	}
	a := i.attributes
	for _, key := range slices.Sorted(maps.Keys(said.AuditAnnotations)) {
		a.Annotate(h.Name+"/"+key, said.AuditAnnotations[key])
	}
	for _, w := range said.Warnings {
		a.Warn(w)
	}
	if !said.Allowed {
		return response{}, h.denied(said.Result)
	}
	return response{said.Patch, ptr.Deref(said.PatchType, "")}, nil
}

// post sends a review and decodes the answer.
func (h *hook) post(ctx context.Context, review, answer runtime.Object) error {
	client, err := h.options.Clients.For(h.target(), reviewCodec)
	if err != nil {
		return h.failed(fmt.Errorf("could not get REST client: %w", err))
	}
	if h.TimeoutSeconds != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(*h.TimeoutSeconds)*time.Second)
		defer cancel()
	}
	r := client.Post().Body(review)
	if deadline, ok := ctx.Deadline(); ok {
		if left := time.Until(deadline); left > 0 {
			r.Timeout((left + time.Second - 1).Truncate(time.Second))
		}
	}
	if err := r.Do(ctx).Into(answer); err != nil {
		return h.failed(fmt.Errorf("failed to call webhook: %w", err))
	}
	return nil
}

func (h *hook) target() webhookclient.Target {
	c := h.ClientConfig
	t := webhookclient.Target{URL: ptr.Deref(c.URL, ""), CABundle: c.CABundle}
	if s := c.Service; s != nil {
		t.Service = &webhookclient.Service{
			Namespace: s.Namespace, Name: s.Name, Port: ptr.Deref(s.Port, 443), Path: ptr.Deref(s.Path, ""),
		}
	}
	return t
}

// denied returns the error for a write that the webhook does not allow.
//
// Source: k8s.io/apiserver v0.37.2 pkg/admission/plugin/webhook/errors/statuserror.go.
func (h *hook) denied(result *metav1.Status) error {
	status := metav1.Status{}
	if result != nil {
		status = *result
	}
	status.Code = max(status.Code, http.StatusBadRequest)
	if status.Status == "" || status.Status == metav1.StatusSuccess {
		status.Status = metav1.StatusFailure
	}
	by := fmt.Sprintf("admission webhook %q denied the request", h.Name)
	switch {
	case status.Message != "":
		status.Message = by + ": " + status.Message
	case status.Reason != "":
		status.Message = by + ": " + string(status.Reason)
	default:
		status.Message = by + " without explanation"
	}
	return &apierrors.StatusError{ErrStatus: status}
}

// request returns the question to the webhook.
func (i invocation) request() *admissionv1.AdmissionRequest {
	a := i.attributes
	kind, resource := metav1.GroupVersionKind(a.Kind), metav1.GroupVersionResource(a.Resource)
	user := authenticationv1.UserInfo{
		Username: a.User.Name, UID: a.User.UID, Groups: a.User.Groups,
		Extra: map[string]authenticationv1.ExtraValue{},
	}
	for key, values := range a.User.Extra {
		user.Extra[key] = values
	}
	return &admissionv1.AdmissionRequest{
		UID: uuid.NewUUID(), Kind: metav1.GroupVersionKind(i.as.Kind),
		Resource: metav1.GroupVersionResource(i.as.Resource), SubResource: a.Subresource,
		RequestKind: &kind, RequestResource: &resource, RequestSubResource: a.Subresource,
		Name: a.Name, Namespace: a.Namespace, Operation: a.Operation, UserInfo: user,
		Object:    runtime.RawExtension{Object: i.versions.object},
		OldObject: runtime.RawExtension{Object: i.versions.old},
		DryRun:    &a.DryRun, Options: runtime.RawExtension{Object: a.Options},
	}
}

// reviews returns the review to send, in the first version that the webhook accepts, and an empty one for the answer.
func reviews(versions []string, r *admissionv1.AdmissionRequest) (review, answer runtime.Object, err error) {
	for _, v := range versions {
		switch v {
		case admissionv1.SchemeGroupVersion.Version:
			return &admissionv1.AdmissionReview{Request: r}, &admissionv1.AdmissionReview{}, nil
		case admissionv1beta1.SchemeGroupVersion.Version:
			return &admissionv1beta1.AdmissionReview{Request: &admissionv1beta1.AdmissionRequest{
				UID: r.UID, Kind: r.Kind, Resource: r.Resource, SubResource: r.SubResource,
				RequestKind: r.RequestKind, RequestResource: r.RequestResource,
				RequestSubResource: r.RequestSubResource, Name: r.Name, Namespace: r.Namespace,
				Operation: admissionv1beta1.Operation(r.Operation), UserInfo: r.UserInfo, Object: r.Object,
				OldObject: r.OldObject, DryRun: r.DryRun, Options: r.Options,
			}}, &admissionv1beta1.AdmissionReview{}, nil
		}
	}
	return nil, nil, errors.New("webhook does not accept known AdmissionReview versions (v1, v1beta1)")
}

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

// Options are what webhooks need.
type Options struct {
	Clients *webhookclient.Clients

	// Codec decodes what a webhook has patched.
	Codec runtime.Serializer

	// CEL evaluates match conditions. If it is nil, a write that would need them is refused. Authorizer is for what
	// they ask about users.
	CEL        expressions.Evaluator
	Authorizer *rbac.Authorizer
}

// hook is a webhook of a configuration. A validating one has the form of a mutating one.
type hook struct {
	registrationv1.MutatingWebhook
	configuration string
	id            string // unique among the webhooks of all configurations of the kind

	namespaces, objects labels.Selector
	conditions          func() expressions.Conditions // compiles them on first use; nil: none
	broken              error                         // the configuration cannot be used: it was not validated
	options             *Options
}

func newHook(o *Options, configuration string, n int, w registrationv1.MutatingWebhook) *hook {
	h := &hook{
		MutatingWebhook: w, configuration: configuration, options: o,
		id: fmt.Sprintf("%s/%s/%d", configuration, w.Name, n),
	}
	var errs [3]error
	h.namespaces, errs[0] = metav1.LabelSelectorAsSelector(w.NamespaceSelector)
	h.objects, errs[1] = metav1.LabelSelectorAsSelector(w.ObjectSelector)
	switch {
	case len(w.MatchConditions) == 0:
	case o.CEL == nil:
		errs[2] = errors.New("matchConditions: this server does not evaluate CEL")
	default:
		h.conditions = sync.OnceValue(func() expressions.Conditions { return o.CEL.Conditions(&w) })
	}
	h.broken = errors.Join(errs[:]...)
	return h
}

// ignores reports whether a failed call lets the write pass.
func (h *hook) ignores() bool {
	return h.FailurePolicy != nil && *h.FailurePolicy == registrationv1.Ignore
}

// supportsDryRun returns an error for a dry run that the webhook would not notice.
func (h *hook) supportsDryRun(a *admission.Attributes) error {
	if !a.DryRun {
		return nil
	}
	switch ptr.Deref(h.SideEffects, registrationv1.SideEffectClassUnknown) {
	case registrationv1.SideEffectClassNone, registrationv1.SideEffectClassNoneOnDryRun:
		return nil
	}
	return apierrors.NewBadRequest(fmt.Sprintf("admission webhook %q does not support dry run", h.Name))
}

// versions are the objects of a write in the kind that a webhook gets.
type versions struct {
	kind        schema.GroupVersionKind
	object, old runtime.Object
	dirty       bool // object is no longer what Attributes.Object was converted to
}

// match returns as what the webhook gets the write, or ok false if it does not get it. in returns the objects of the
// write in a kind.
func (h *hook) match(ctx context.Context, a *admission.Attributes,
	in func(schema.GroupVersionKind) (*versions, error),
) (as admission.Equivalent, ok bool, err error) {
	if h.broken != nil { // Its selectors may be what is broken.
		if as, ok, err = a.MatchRules(h.Rules, h.MatchPolicy); ok && err == nil {
			err = apierrors.NewInternalError(h.broken)
		}
		return as, false, err
	}
	here, missing := a.MatchNamespace(ctx, h.namespaces)
	if missing == nil && !here || !a.MatchObject(h.objects) {
		return as, false, nil
	}
	as, ok, err = a.MatchRules(h.Rules, h.MatchPolicy)
	if err != nil || !ok {
		return as, false, err
	}
	if missing != nil { // matters only to a webhook that would get the write
		return as, false, missing
	}
	if h.conditions == nil {
		return as, true, nil
	}
	v, err := in(as.Kind)
	if err != nil {
		return as, false, apierrors.NewInternalError(err)
	}
	b := *a
	b.Object, b.OldObject = v.object, v.old
	w := expressions.Write{Attributes: &b, As: as, Authorizer: h.options.Authorizer}
	ok, err = h.conditions().Match(ctx, w, nil)
	if err != nil {
		err = apierrors.NewForbidden(a.Resource.GroupResource(), a.Name, err)
	}
	return as, ok && err == nil, err
}
