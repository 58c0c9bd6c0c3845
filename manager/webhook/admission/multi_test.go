package admission_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/manager/webhook/admission"
)

// label returns a mutating handler that adds a label. If the object has no labels, its patch adds the whole map.
func label(name string) admission.Handler {
	return admission.HandlerFunc(func(_ context.Context, r admission.Request) admission.Response {
		labels := `{"labels":{`
		changed := bytes.Replace(r.Object.Raw, []byte(labels), []byte(labels+`"`+name+`":"x",`), 1)
		if bytes.Equal(changed, r.Object.Raw) {
			changed = bytes.Replace(changed, []byte(`"metadata":{`), []byte(`"metadata":`+labels+`"`+name+`":"x"}`), 1)
		}
		return admission.PatchResponseFromRaw(r.Object.Raw, changed).WithWarnings(name)
	})
}

// does returns a handler that always gives this response.
func does(r admission.Response) admission.Handler {
	return admission.HandlerFunc(func(context.Context, admission.Request) admission.Response { return r })
}

func TestMultiMutatingHandler(t *testing.T) {
	other := admissionv1.PatchType("MergePatch")
	odd := admission.Allowed("")
	odd.PatchType, odd.Patch = &other, []byte(`{}`)
	misplaced := admission.Patched("", admission.JSONPatchOp{Operation: "remove", Path: "/spec"})
	for _, c := range []struct {
		name     string
		handlers []admission.Handler
		allowed  bool
		want     string // in the patch if allowed, else in the message
	}{
		{"none", nil, true, ""},
		{"nothing to change", []admission.Handler{does(admission.Allowed(""))}, true, ""},
		{
			"the second sees what the first did",
			[]admission.Handler{label("a"), label("b")},
			true,
			`[{"op":"add","path":"/metadata/labels","value":{"a":"x"}},` +
				`{"op":"add","path":"/metadata/labels/b","value":"x"}]`,
		},
		{"denied", []admission.Handler{label("a"), does(admission.Denied("never"))}, false, "never"},
		{"another patch", []admission.Handler{does(odd)}, false, `mutating handler 0: its patch is of type "MergePatch"`},
		{"a patch of nothing", []admission.Handler{label("a"), does(misplaced)}, false, "mutating handler 1: "},
	} {
		got := ask(t, &admission.Webhook{Handler: admission.MultiMutatingHandler(c.handlers...)},
			`{"uid": "7", "operation": "CREATE", "object": {"metadata":{}}}`)
		text := string(got.Patch)
		if !c.allowed {
			text = got.Result.Message
		}
		if got.Allowed != c.allowed || !strings.Contains(text, c.want) || c.want == "" && text != "" {
			t.Errorf("%s: allowed %v, %s; want %s", c.name, got.Allowed, text, c.want)
		}
	}
	got := ask(t, &admission.Webhook{Handler: admission.MultiMutatingHandler(label("a"), label("b"))},
		`{"uid": "7", "object": {"metadata":{}}}`)
	if w := fmt.Sprint(got.Warnings); w != "[a b]" {
		t.Errorf("warnings %s", w)
	}
}

func TestMultiValidatingHandler(t *testing.T) {
	careful, never := admission.Allowed("").WithWarnings("careful"), admission.Denied("never").WithWarnings("no")
	for _, c := range []struct {
		responses []admission.Response
		allowed   bool
		warnings  string
	}{
		{nil, true, "[]"},
		{[]admission.Response{careful, careful}, true, "[careful careful]"},
		{[]admission.Response{careful, never, careful}, false, "[no]"},
	} {
		var handlers []admission.Handler
		for _, r := range c.responses {
			handlers = append(handlers, does(r))
		}
		got := ask(t, &admission.Webhook{Handler: admission.MultiValidatingHandler(handlers...)}, `{"uid": "7"}`)
		if w := fmt.Sprint(got.Warnings); got.Allowed != c.allowed || w != c.warnings {
			t.Errorf("%d handlers: allowed %v, warnings %s; want %v, %s", len(handlers), got.Allowed, w, c.allowed,
				c.warnings)
		}
	}
}

// The context and the logger of a request are made by the functions of the webhook.
func TestContextAndLoggerOfARequest(t *testing.T) {
	type agent struct{}
	var logged string
	hook := &admission.Webhook{
		Handler: admission.HandlerFunc(func(ctx context.Context, _ admission.Request) admission.Response {
			klog.FromContext(ctx).Info("Asked")
			return admission.Allowed(fmt.Sprint(ctx.Value(agent{})))
		}),
		WithContextFunc: func(ctx context.Context, r *http.Request) context.Context {
			return context.WithValue(ctx, agent{}, r.UserAgent())
		},
	}
	base := funcr.New(func(_, args string) { logged = args }, funcr.Options{})
	call := func() string {
		r := httptest.NewRequestWithContext(klog.NewContext(t.Context(), base), http.MethodPost, "/", strings.NewReader(
			`{"request": {"uid": "7", "operation": "CREATE", "namespace": "shop", "name": "a"}}`))
		r.Header.Set("User-Agent", "kube")
		w := httptest.NewRecorder()
		hook.ServeHTTP(w, r)
		return w.Body.String()
	}
	if got := call(); !strings.Contains(got, `"message":"kube"`) {
		t.Errorf("the context has not the header: %s", got)
	}
	for _, part := range []string{`"requestID"="7"`, `"operation"="CREATE"`, `"namespace"="shop"`} {
		if !strings.Contains(logged, part) {
			t.Errorf("logged %s, without %s", logged, part)
		}
	}
	hook.LogConstructor = func(base logr.Logger, req *admission.Request) logr.Logger {
		return base.WithValues("mine", req.Name)
	}
	call()
	if !strings.Contains(logged, `"mine"="a"`) || strings.Contains(logged, "requestID") {
		t.Errorf("logged %s", logged)
	}
}
