package admission_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/flyball-dev/flyball/manager/webhook/admission"
)

// post sends a body to a webhook.
func post(hook http.Handler, url, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, url, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json; charset=utf-8")
	w := httptest.NewRecorder()
	hook.ServeHTTP(w, r)
	return w
}

// ask sends a review of version v1, and returns the response.
func ask(t *testing.T, hook http.Handler, request string) *admissionv1.AdmissionResponse {
	t.Helper()
	w := post(hook, "/", `{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": `+request+`}`)
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(w.Body.Bytes(), &review); err != nil || w.Code != http.StatusOK {
		t.Fatalf("status %d: %s (%v)", w.Code, w.Body, err)
	}
	return review.Response
}

func handler(f func(ctx context.Context, r admission.Request) admission.Response) *admission.Webhook {
	return &admission.Webhook{Handler: admission.HandlerFunc(f)}
}

var allow = handler(func(context.Context, admission.Request) admission.Response { return admission.Allowed("") })

func TestReviewIsAnsweredInKind(t *testing.T) {
	for _, version := range []string{"admission.k8s.io/v1", "admission.k8s.io/v1beta1"} {
		w := post(allow, "/", `{"apiVersion": "`+version+`", "kind": "AdmissionReview", "request": {"uid": "7"}}`)
		want := `{"kind":"AdmissionReview","apiVersion":"` + version +
			`","response":{"uid":"7","allowed":true,"status":{"metadata":{},"code":200}}}`
		if got := strings.TrimSpace(w.Body.String()); w.Code != http.StatusOK || got != want {
			t.Errorf("status %d, %s, want %s", w.Code, got, want)
		}
	}
}

// A request that somebody writes for a test often lacks what an API server always sends.
func TestIncompleteReviews(t *testing.T) {
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(`{"request": {}}`))
	r.Method, r.URL = "", nil
	w := httptest.NewRecorder()
	allow.ServeHTTP(w, r)
	const want = `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"","allowed":true,` +
		`"status":{"metadata":{},"code":200}}}`
	if got := strings.TrimSpace(w.Body.String()); got != want || w.Code != http.StatusOK {
		t.Errorf("status %d, %s, want %s", w.Code, got, want)
	}
}

func TestGarbageIsRefusedInWords(t *testing.T) {
	const review = `{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"`
	for _, c := range []struct {
		name, method, media, body string
		code                      int32
		says                      string
	}{
		{"empty", "POST", "application/json", "", 400, "the body is empty"},
		{"not JSON", "POST", "application/json", "\x00\xff", 400, "is not an AdmissionReview"},
		{"a list", "POST", "application/json", "[]", 400, "is not an AdmissionReview"},
		{"something else", "POST", "application/json", `{"kind": "Pod"}`, 400, `of kind "Pod", want AdmissionReview`},
		{"a version to come", "POST", "application/json", `{"apiVersion": "admission.k8s.io/v2",
			"kind": "AdmissionReview"}`, 400, "want admission.k8s.io/v1 or admission.k8s.io/v1beta1"},
		{"no request", "POST", "application/json", review + `}`, 400, "has no request"},
		{"a browser", "GET", "", "", 405, "answers only POST"},
		{"a form", "POST", "text/plain", "{}", 415, `Content-Type is "text/plain"`},
		{"too much", "POST", "application/json", strings.Repeat("[", 7<<20+1), 413, "larger than the limit"},
	} {
		r := httptest.NewRequest(c.method, "/", strings.NewReader(c.body))
		r.Header.Set("Content-Type", c.media)
		w := httptest.NewRecorder()
		allow.ServeHTTP(w, r)
		var status metav1.Status
		err := json.Unmarshal(w.Body.Bytes(), &status)
		if err != nil || status.Kind != "Status" || status.Code != c.code || w.Code != int(c.code) ||
			!strings.Contains(status.Message, c.says) {
			t.Errorf("%s: %d %s (%v), want %d %s", c.name, w.Code, w.Body, err, c.code, c.says)
		}
	}
}

func TestPanicIsAnswered(t *testing.T) {
	got := ask(t, handler(func(context.Context, admission.Request) admission.Response { panic("oops") }), `{"uid": "7"}`)
	if got.Allowed || got.UID != "7" || got.Result.Code != http.StatusInternalServerError ||
		!strings.Contains(got.Result.Message, "oops") {
		t.Errorf("%+v", got)
	}
	if got := ask(t, &admission.Webhook{}, `{"uid": "7"}`); got.Allowed || got.Result.Code != 500 {
		t.Errorf("without a handler: %+v", got)
	}
}

// The URL has the time for which the API server waits.
func TestTimeoutOfTheCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := handler(func(ctx context.Context, _ admission.Request) admission.Response {
			<-ctx.Done()
			return admission.Errored(http.StatusGatewayTimeout, ctx.Err())
		})
		for url, want := range map[string]time.Duration{
			"/?timeout=3s": 3 * time.Second, "/": 30 * time.Second, "/?timeout=-1s": 30 * time.Second,
			"/?timeout=2h": 30 * time.Second, "/?timeout=x": 30 * time.Second,
		} {
			began := time.Now()
			post(slow, url, `{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "7"}}`)
			if took := time.Since(began); took != want {
				t.Errorf("%s: the context ended after %v, want %v", url, took, want)
			}
		}
	})
}

// checker is a Defaulter and a Validator that records its arguments and returns an error.
type checker struct {
	calls []string
	err   error
}

func (c *checker) note(ctx context.Context, what string, pods ...*corev1.Pod) (admission.Warnings, error) {
	r, err := admission.RequestFromContext(ctx)
	if err != nil {
		return nil, err
	}
	for _, pod := range pods {
		what += " " + pod.Name
	}
	if r.IsDryRun() {
		what += " dry"
	}
	c.calls = append(c.calls, what)
	return admission.Warnings{"careful"}, c.err
}

func (c *checker) Default(ctx context.Context, pod *corev1.Pod) error {
	_, err := c.note(ctx, "default", pod)
	return err
}

func (c *checker) ValidateCreate(ctx context.Context, pod *corev1.Pod) (admission.Warnings, error) {
	return c.note(ctx, "create", pod)
}

func (c *checker) ValidateUpdate(ctx context.Context, old, pod *corev1.Pod) (admission.Warnings, error) {
	return c.note(ctx, "update", old, pod)
}

func (c *checker) ValidateDelete(ctx context.Context, pod *corev1.Pod) (admission.Warnings, error) {
	return c.note(ctx, "delete", pod)
}

func TestOperations(t *testing.T) {
	const a = `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}`
	const b = `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "b"}}`
	const scale = `{"apiVersion": "autoscaling/v1", "kind": "Scale"}`
	for _, c := range []struct {
		name, request string
		calls         []string // of the Defaulter, then of the Validator
		code          int32    // of the Validator's answer
	}{
		{"create", `"operation": "CREATE", "object": ` + a, []string{"default a", "create a"}, 200},
		{"dry run", `"operation": "CREATE", "dryRun": true, "object": ` + a, []string{"default a dry", "create a dry"}, 200},
		{"update", `"operation": "UPDATE", "oldObject": ` + a + `, "object": ` + b, []string{"default b", "update a b"}, 200},
		{
			"status", `"operation": "UPDATE", "subResource": "status", "oldObject": ` + a + `, "object": ` + b,
			[]string{"default b", "update a b"},
			200,
		},
		{"delete", `"operation": "DELETE", "oldObject": ` + a, []string{"delete a"}, 200},
		{"connect", `"operation": "CONNECT", "object": {"kind": "PodExecOptions", "apiVersion": "v1"}`, nil, 200},
		{"no object", `"operation": "CREATE"`, nil, 400},
		{"no old object", `"operation": "DELETE"`, nil, 400},
		{
			"another kind", `"operation": "UPDATE", "subResource": "scale", "oldObject": ` + scale + `, "object": ` + scale,
			nil, 400,
		},
		{"not in the API", `"operation": "PATCH"`, nil, 400},
	} {
		check := &checker{}
		ask(t, admission.WithDefaulter(scheme.Scheme, check), `{"uid": "7", `+c.request+`}`)
		got := ask(t, admission.WithValidator(scheme.Scheme, check), `{"uid": "7", `+c.request+`}`)
		if !slices.Equal(check.calls, c.calls) || got.Result.Code != c.code || got.Allowed != (c.code == 200) {
			t.Errorf("%s: called %q, code %d; want %q, %d", c.name, check.calls, got.Result.Code, c.calls, c.code)
		}
	}
}

func TestErrorsReachTheUser(t *testing.T) {
	invalid := apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "a", nil)
	for _, c := range []struct {
		err    error
		code   int32
		reason metav1.StatusReason
	}{
		{errors.New("no"), 403, metav1.StatusReasonForbidden},
		{invalid, 422, metav1.StatusReasonInvalid},
		{errors.Join(errors.New("first"), invalid), 422, metav1.StatusReasonInvalid},
		{context.DeadlineExceeded, 504, metav1.StatusReasonTimeout},
	} {
		request := `{"uid": "7", "operation": "CREATE", "object": {"apiVersion": "v1", "kind": "Pod"}}`
		check := &checker{err: c.err}
		validated := ask(t, admission.WithValidator(scheme.Scheme, check), request)
		defaulted := ask(t, admission.WithDefaulter(scheme.Scheme, check), request)
		for _, got := range []*admissionv1.AdmissionResponse{validated, defaulted} {
			if got.Allowed || got.Result.Code != c.code || got.Result.Reason != c.reason || got.Result.Message == "" {
				t.Errorf("%v: %+v", c.err, got.Result)
			}
		}
		if !slices.Equal(validated.Warnings, []string{"careful"}) {
			t.Errorf("%v: warnings %q", c.err, validated.Warnings)
		}
	}
}

// FuzzAdmissionReview: whatever is sent, the answer is a Status or an AdmissionReview for the request.
func FuzzAdmissionReview(f *testing.F) {
	hooks := []http.Handler{
		admission.WithDefaulter(scheme.Scheme, policy{}), admission.WithValidator(scheme.Scheme, &checker{}),
		admission.WithCustomDefaulter(runtime.NewScheme(), &corev1.Pod{}, nothing{}),
	}
	for _, seed := range []string{
		"", "{}", `{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "7"}}`,
		`{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview","request":{"uid":"7","operation":"CREATE",
			"object":{"apiVersion":"v1","kind":"Pod","spec":{"containers":[{"name":"a"},{"name":"b","x":[1e400]}]}}}}`,
		`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"7","operation":"UPDATE",
			"object":{"apiVersion":"v1","kind":"Pod"},"oldObject":null}}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		for _, hook := range hooks {
			w := post(hook, "/", body)
			text, _ := io.ReadAll(w.Body)
			if w.Code != http.StatusOK {
				var status metav1.Status
				err := json.Unmarshal(text, &status)
				if err != nil || int(status.Code) != w.Code || status.Message == "" {
					t.Fatalf("status %d: %s", w.Code, text)
				}
				continue
			}
			var asked, review admissionv1.AdmissionReview
			if err := errors.Join(json.Unmarshal([]byte(body), &asked), json.Unmarshal(text, &review)); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			r := review.Response
			sameVersion := asked.APIVersion == "" || review.APIVersion == asked.APIVersion
			if r == nil || r.UID != asked.Request.UID || !sameVersion || r.Result.Code == 0 {
				t.Fatalf("the answer is not one: %s", text)
			}
			if (r.PatchType == nil) != (r.Patch == nil) || r.Patch != nil && !r.Allowed {
				t.Fatalf("patch without its type, or of a refusal: %s", text)
			}
		}
	})
}

// nothing is a Defaulter that changes nothing.
type nothing struct{}

func (nothing) Default(context.Context, runtime.Object) error { return nil }
