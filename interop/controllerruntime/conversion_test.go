package controllerruntime_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	appsv1beta1 "k8s.io/api/apps/v1beta1"
	appsv1beta2 "k8s.io/api/apps/v1beta2"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/webhook/conversion"

	"github.com/flyball-dev/flyball/interop/controllerruntime"
)

// ExampleNewConversionHandler answers a review that has nothing to convert.
func ExampleNewConversionHandler() {
	hook := controllerruntime.NewConversionHandler(scheme.Scheme, conversion.NewRegistry())
	r := httptest.NewRequest(http.MethodPost, "/convert", strings.NewReader(
		`{"request": {"uid": "7", "desiredAPIVersion": "apps/v1", "objects": []}}`))
	w := httptest.NewRecorder()
	hook.ServeHTTP(w, r)
	fmt.Println(strings.Contains(w.Body.String(), `"status":"Success"`))
	// Output: true
}

// convertDeployment asks the handler to convert a Deployment, and returns the answer.
func convertDeployment(hook http.Handler, from, to string) string {
	r := httptest.NewRequest(http.MethodPost, "/convert", strings.NewReader(
		`{"request": {"uid": "7", "desiredAPIVersion": "`+to+`", "objects": [{"apiVersion": "`+from+`",
		"kind": "Deployment", "metadata": {"namespace": "shop", "name": "web"}}]}}`))
	w := httptest.NewRecorder()
	hook.ServeHTTP(w, r)
	return w.Body.String()
}

// A converter of controller-runtime that is registered later is found. It chooses by the kinds of the objects, which
// are set.
func TestConversionHandler(t *testing.T) {
	registry := conversion.NewRegistry()
	hook := controllerruntime.NewConversionHandler(scheme.Scheme, registry)
	if got := convertDeployment(hook, "apps/v1beta1", "apps/v1"); !strings.Contains(got, `"status":"Failure"`) ||
		!strings.Contains(got, "convert Deployment shop/web of apps/v1beta1 to apps/v1: the kind has no conversion") {
		t.Errorf("without a converter: %s", got)
	}
	never := errors.New("never")
	newConverter := conversion.NewHubSpokeConverter(&appsv1.Deployment{},
		conversion.NewSpokeConverter(&appsv1beta1.Deployment{},
			func(_ context.Context, _ *appsv1.Deployment, dst *appsv1beta1.Deployment) error {
				dst.Labels = map[string]string{"converted": "down"}
				return nil
			},
			func(context.Context, *appsv1beta1.Deployment, *appsv1.Deployment) error { return never }),
		conversion.NewSpokeConverter(&appsv1beta2.Deployment{},
			func(context.Context, *appsv1.Deployment, *appsv1beta2.Deployment) error { return never },
			func(context.Context, *appsv1beta2.Deployment, *appsv1.Deployment) error { return never }),
	)
	known := runtime.NewScheme()
	if err := errors.Join(appsv1.AddToScheme(known), appsv1beta1.AddToScheme(known),
		appsv1beta2.AddToScheme(known)); err != nil {
		t.Fatal(err)
	}
	made, err := newConverter(known)
	if err != nil {
		t.Fatal(err)
	}
	kind := appsv1.SchemeGroupVersion.WithKind("Deployment").GroupKind()
	if err := registry.RegisterConverter(kind, made); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"status":"Success"`, `"name":"web"`, `"converted":"down"`, `"apps/v1beta1"`} {
		if got := convertDeployment(hook, "apps/v1", "apps/v1beta1"); !strings.Contains(got, part) {
			t.Errorf("%s lacks %s", got, part)
		}
	}
	if got := convertDeployment(hook, "apps/v1beta1", "apps/v1"); !strings.Contains(got, "never") {
		t.Errorf("a conversion that fails: %s", got)
	}
}
