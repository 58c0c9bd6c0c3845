package builder_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/internal/misuse/misusetest"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/manager/builder"
	"github.com/flyball-dev/flyball/manager/internal/website"
	"github.com/flyball-dev/flyball/manager/webhook"
	"github.com/flyball-dev/flyball/manager/webhook/admission"
	"github.com/flyball-dev/flyball/manager/webhook/conversion"
)

// websites defaults and validates websites.
type websites struct{}

var (
	_ webhook.Defaulter[*website.V1] = websites{}
	_ webhook.Validator[*website.V1] = websites{}
)

func (websites) Default(_ context.Context, w *website.V1) error {
	if w.Spec.Port == 0 {
		w.Spec.Port = 80
	}
	return nil
}

func (websites) ValidateCreate(_ context.Context, w *website.V1) (admission.Warnings, error) {
	if w.Spec.Host == "" {
		return nil, errors.New("spec.host is required")
	}
	return admission.Warnings{"v1 is old"}, nil
}

func (w websites) ValidateUpdate(ctx context.Context, _, obj *website.V1) (admission.Warnings, error) {
	return w.ValidateCreate(ctx, obj)
}

func (websites) ValidateDelete(context.Context, *website.V1) (admission.Warnings, error) {
	return nil, nil
}

func siteManager(t testing.TB) *manager.Manager {
	t.Helper()
	m, err := manager.New(&rest.Config{Host: "http://127.0.0.1:1"}, manager.Options{Scheme: website.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// post sends a review in JSON to a webhook of the manager, and returns the answer.
func post(m *manager.Manager, path, review string) string {
	r := httptest.NewRequest("POST", path, strings.NewReader(review))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	m.GetWebhookServer().ServeHTTP(w, r)
	return strings.TrimSpace(w.Body.String())
}

// review returns an AdmissionReview of an object that is created.
func review(object string) string {
	return `{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
		"uid": "7", "operation": "CREATE", "object": ` + object + `}}`
}

// The webhooks of a kind are served by the manager.
func ExampleWebhookManagedBy() {
	mgr, err := manager.New(&rest.Config{Host: "http://127.0.0.1:1"}, manager.Options{Scheme: website.Scheme()})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = builder.WebhookManagedBy(mgr).
		For(&website.V1{}).
		WithDefaulter(websites{}).
		WithValidator(websites{}).
		Complete()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, path := range mgr.GetWebhookServer().Registered() {
		fmt.Println(path)
	}
	// Output:
	// /convert
	// /mutate-web-example-org-v1-website
	// /validate-web-example-org-v1-website
}

func TestWebhooksAreServed(t *testing.T) {
	for name, build := range map[string]func(m *manager.Manager) *builder.WebhookBuilder{
		"For": func(m *manager.Manager) *builder.WebhookBuilder {
			return builder.WebhookManagedBy(m).For(&website.V1{})
		},
		"with the manager": func(m *manager.Manager) *builder.WebhookBuilder {
			return builder.WebhookManagedBy(m, &website.V1{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := siteManager(t)
			if err := build(m).WithDefaulter(websites{}).WithValidator(websites{}).Complete(); err != nil {
				t.Fatal(err)
			}
			object := `{"apiVersion": "web.example.org/v1", "kind": "Website", "spec": {"host": "a", "unknown": 1}}`
			var defaulted struct{ Response struct{ Patch []byte } }
			answer := post(m, "/mutate-web-example-org-v1-website", review(object))
			if err := json.Unmarshal([]byte(answer), &defaulted); err != nil {
				t.Fatal(err)
			}
			if got, want := string(defaulted.Response.Patch), `[{"op":"add","path":"/spec/port","value":80}]`; got != want {
				t.Errorf("patch %s, want %s", got, want)
			}
			got := post(m, "/validate-web-example-org-v1-website", review(object))
			if !strings.Contains(got, `"allowed":true`) || !strings.Contains(got, `"warnings":["v1 is old"]`) {
				t.Errorf("a valid object: %s", got)
			}
			got = post(m, "/validate-web-example-org-v1-website", review(strings.ReplaceAll(object, "host", "ghost")))
			if !strings.Contains(got, `"allowed":false`) || !strings.Contains(got, "spec.host is required") {
				t.Errorf("an invalid object: %s", got)
			}
		})
	}
}

// The context and the logger of requests are made by functions of the program.
func TestContextsOfWebhooks(t *testing.T) {
	var agents, named []string
	m := siteManager(t)
	err := builder.WebhookManagedBy(m).For(&website.V1{}).WithDefaulter(websites{}).WithValidator(websites{}).
		WithContextFunc(func(ctx context.Context, r *http.Request) context.Context {
			agents = append(agents, r.URL.Path)
			return ctx
		}).
		WithLogConstructor(func(base logr.Logger, req *admission.Request) logr.Logger {
			named = append(named, string(req.UID))
			return base
		}).Complete()
	if err != nil {
		t.Fatal(err)
	}
	paths := []string{"/mutate-web-example-org-v1-website", "/validate-web-example-org-v1-website"}
	for _, path := range paths {
		post(m, path, review(`{"apiVersion": "web.example.org/v1", "kind": "Website"}`))
	}
	if !slices.Equal(agents, paths) || !slices.Equal(named, []string{"7", "7"}) {
		t.Errorf("contexts for %q, loggers for %q", agents, named)
	}
}

// anything is a defaulter and a validator written for controller-runtime before it had generics. Its warnings have a
// type of their own.
type anything struct{}

type ownWarnings []string

func (anything) Default(_ context.Context, obj runtime.Object) error {
	obj.(*website.V1).Spec.Host = "default.example"
	return nil
}

func (anything) ValidateCreate(context.Context, runtime.Object) (ownWarnings, error) {
	return ownWarnings{"careful"}, nil
}

func (anything) ValidateUpdate(context.Context, runtime.Object, runtime.Object) (ownWarnings, error) {
	return nil, nil
}

func (anything) ValidateDelete(context.Context, runtime.Object) (ownWarnings, error) { return nil, nil }

func TestWebhooksOfAnyObject(t *testing.T) {
	m := siteManager(t)
	err := builder.WebhookManagedBy(m).For(&website.V1{}).WithDefaulter(anything{}).WithValidator(anything{}).
		WithDefaulterCustomPath("/default/site").WithValidatorCustomPath("/check").Complete()
	if err != nil {
		t.Fatal(err)
	}
	object := review(`{"apiVersion": "web.example.org/v1", "kind": "Website"}`)
	if got := post(m, "/default/site", object); !strings.Contains(got, `"patchType":"JSONPatch"`) {
		t.Errorf("defaulted: %s", got)
	}
	if got := post(m, "/check", object); !strings.Contains(got, `"warnings":["careful"]`) {
		t.Errorf("validated: %s", got)
	}
}

func TestConversionIsServed(t *testing.T) {
	m := siteManager(t)
	for range 2 { // once for each version
		if err := builder.WebhookManagedBy(m).For(&website.V2{}).Complete(); err != nil {
			t.Fatal(err)
		}
	}
	got := post(m, "/convert", `{"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": {
		"uid": "7", "desiredAPIVersion": "web.example.org/v2", "objects": [
			{"apiVersion": "web.example.org/v1", "kind": "Website", "metadata": {"name": "a"}, "spec": {"port": 81}}]}}`)
	if !strings.Contains(got, `"ports":[81]`) || !strings.Contains(got, `"name":"a"`) {
		t.Errorf("converted: %s", got)
	}
}

// half has a method whose signature differs from a Validator's.
type half struct{ websites }

func (half) ValidateUpdate(context.Context, *website.V1) error { return nil }

func TestWebhookMisuse(t *testing.T) {
	m := siteManager(t)
	sites := func() *builder.WebhookBuilder { return builder.WebhookManagedBy(m).For(&website.V1{}) }
	taken := func() *builder.WebhookBuilder { return sites().WithValidator(websites{}) }
	if err := taken().Complete(); err != nil {
		t.Fatal(err)
	}
	badConverter := func(*runtime.Scheme) (conversion.Converter, error) { return nil, errors.New("on purpose") }
	misusetest.Run(t, []misusetest.Call{
		misusetest.Of("no manager", func() error { return builder.WebhookManagedBy(nil).For(&website.V1{}).Complete() },
			"the manager is nil; make one with manager.New"),
		misusetest.Of("no For", func() error { return builder.WebhookManagedBy(m).Complete() }, "call For(&Kind{})"),
		misusetest.Of("nil For", func() error { return builder.WebhookManagedBy(m).For(nil).Complete() },
			"For: the object is nil; give an empty one"),
		misusetest.Of("two Fors", func() error { return sites().For(&website.V2{}).Complete() },
			"build the webhooks of each kind by themselves"),
		misusetest.Of("strange type", func() error { return builder.WebhookManagedBy(m, &corev1.Pod{}).Complete() },
			"the manager's scheme does not know the type: call AddToScheme of its package, and give the scheme to "+
				"the manager in Options.Scheme"),
		misusetest.Of("nameless", func() error {
			return builder.WebhookManagedBy(m, &unstructured.Unstructured{}).Complete()
		}, "the object does not say its kind"),
		misusetest.Of("nothing", func() error {
			return builder.WebhookManagedBy(siteManager(t), unstructuredSite()).Complete()
		}, "nothing would be served: call WithDefaulter or WithValidator"),
		misusetest.Of("nil defaulter", func() error { return sites().WithDefaulter(nil).Complete() },
			"WithDefaulter: it is given nil"),
		misusetest.Of("two validators", func() error { return taken().WithValidator(anything{}).Complete() },
			"WithValidator was called twice"),
		misusetest.Of("not a defaulter", func() error { return sites().WithDefaulter(errors.New("x")).Complete() },
			"it has no method Default(context.Context, *website.V1)"),
		misusetest.Of("another kind's", func() error {
			return builder.WebhookManagedBy(m).For(&website.V2{}).WithDefaulter(websites{}).Complete()
		}, "its method Default is func(context.Context, *website.V1) error, want (context.Context, *website.V2)"),
		misusetest.Of("half a validator", func() error { return sites().WithValidator(half{}).Complete() },
			"its method ValidateUpdate is func(context.Context, *website.V1) error"),
		misusetest.Of("bad path", func() error { return taken().WithValidatorCustomPath("check").Complete() },
			`WithValidatorCustomPath: the path "check" is not like /validate-website`),
		misusetest.Of("taken path", func() error { return taken().Complete() }, "the path is taken"),
		misusetest.Of("no converter", func() error { return sites().WithConverter(nil).Complete() },
			"WithConverter: the function is nil"),
		misusetest.Of("bad converter", func() error { return sites().WithConverter(badConverter).Complete() },
			"WithConverter: on purpose"),
	})
}

func unstructuredSite() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion("web.example.org/v1")
	u.SetKind("Website")
	return u
}
