package conversion_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/manager/internal/website"
	"github.com/flyball-dev/flyball/manager/webhook/conversion"
)

// answer is the part of a ConversionReview that tests look at.
type answer struct {
	APIVersion string
	Response   struct {
		UID              string
		ConvertedObjects []json.RawMessage
		Result           metav1.Status
	}
}

func post(hook http.Handler, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/convert", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	hook.ServeHTTP(w, r)
	return w
}

// convert asks the webhook to convert objects to a version.
func convert(t *testing.T, hook http.Handler, version string, objects ...string) (a answer) {
	t.Helper()
	w := post(hook, `{"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": {"uid": "7",
		"desiredAPIVersion": "web.example.org/`+version+`", "objects": [`+strings.Join(objects, ",")+`]}}`)
	if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil || w.Code != http.StatusOK || a.Response.UID != "7" {
		t.Fatalf("status %d: %s (%v)", w.Code, w.Body, err)
	}
	return a
}

func websites(t *testing.T) *conversion.Webhook {
	t.Helper()
	hook := conversion.New(website.Scheme())
	for range 2 { // the second time does nothing
		if err := hook.RegisterHub(&website.V2{}); err != nil {
			t.Fatal(err)
		}
	}
	return hook
}

func object(version, spec string) string {
	return `{"kind":"Website","apiVersion":"web.example.org/` + version + `","metadata":{"name":"a","namespace":"n",` +
		`"uid":"u","labels":{"l":"1"}},"spec":` + spec + `}`
}

func TestConversionBothWays(t *testing.T) {
	hook := websites(t)
	down := convert(t, hook, "v1", object("v2", `{"host":"h","ports":[80,443]}`), object("v1", `{"port":1,"kept":2}`))
	if down.Response.Result.Status != metav1.StatusSuccess || len(down.Response.ConvertedObjects) != 2 {
		t.Fatalf("%+v", down)
	}
	first := string(down.Response.ConvertedObjects[0])
	for _, part := range []string{`"port":80`, `"web.example.org/ports":"[443]"`, `"uid":"u"`, `"l":"1"`, `/v1"`} {
		if !strings.Contains(first, part) {
			t.Errorf("as v1: %s is not in %s", part, first)
		}
	}
	if got := string(down.Response.ConvertedObjects[1]); got != object("v1", `{"port":1,"kept":2}`) {
		t.Errorf("it had that version already: %s", got)
	}
	up := convert(t, hook, "v2", first)
	if got := string(up.Response.ConvertedObjects[0]); got != object("v2", `{"host":"h","ports":[80,443]}`) {
		t.Errorf("and back: %s", got)
	}
}

func TestConversionThatFails(t *testing.T) {
	hook := websites(t)
	broken := strings.Replace(object("v1", `{}`), `"uid"`, `"annotations":{"web.example.org/ports":"x"},"uid"`, 1)
	for says, objects := range map[string][]string{
		"convert Website n/a of web.example.org/v1 to web.example.org/v2: annotation": {object("v1", `{}`), broken},
		`no kind "Website" is registered for version "web.example.org/v9"`:            {object("v9", `{}`)},
		"object 0": {`{}`},
	} {
		got := convert(t, hook, "v2", objects...)
		if got.Response.Result.Status != metav1.StatusFailure || len(got.Response.ConvertedObjects) > 0 ||
			!strings.Contains(got.Response.Result.Message, says) {
			t.Errorf("%+v, want: %s", got.Response, says)
		}
	}
	if got := convert(t, hook, "v3", object("v1", `{}`)); got.Response.Result.Status != metav1.StatusFailure {
		t.Errorf("to an unknown version: %+v", got)
	}
	if got := convert(t, conversion.New(website.Scheme()), "v2", object("v1", `{}`)); !strings.Contains(
		got.Response.Result.Message, "has no converter: call NewWebhookManagedBy") {
		t.Errorf("%+v", got)
	}
}

// converter makes a Converter of a function.
type converter func(src, dst runtime.Object) error

func (f converter) ConvertObject(_ context.Context, src, dst runtime.Object) error {
	return f(src, dst)
}

func TestConverterThatPanics(t *testing.T) {
	hook, kind := conversion.New(website.Scheme()), schema.GroupKind{Group: website.Group, Kind: "Website"}
	bad := converter(func(runtime.Object, runtime.Object) error { panic("oops") })
	if err := hook.Register(kind, bad); err != nil {
		t.Fatal(err)
	}
	got := convert(t, hook, "v2", object("v1", `{}`))
	if got.Response.Result.Status != metav1.StatusFailure || !strings.Contains(got.Response.Result.Message, "oops") {
		t.Errorf("%+v", got)
	}
	if err := hook.Register(kind, bad); err == nil {
		t.Error("two converters of one kind")
	}
}

func TestGarbageIsRefusedInWords(t *testing.T) {
	for body, says := range map[string]string{
		"":                "the body is empty",
		"[]":              "is not a ConversionReview",
		`{"kind": "Pod"}`: "want ConversionReview",
		`{"kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v2"}`: "want one of",
		`{"kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1"}`: "has no request",
	} {
		w := post(websites(t), body)
		if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), says) {
			t.Errorf("%s: %d %s", body, w.Code, w.Body)
		}
	}
}

// foreignInterface is like the interface that is the parameter of methods written for controller-runtime; see
// foreignHub and foreignSpoke.
type foreignInterface interface {
	runtime.Object
	Hub()
}

type foreignHub struct{ website.V2 }

type foreignSpoke struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              website.SpecV1 `json:"spec"`
}

func (f *foreignSpoke) DeepCopyObject() runtime.Object { other := *f; return &other }

func (f *foreignSpoke) ConvertTo(hub foreignInterface) error {
	hub.(*foreignHub).Spec.Ports = []int32{f.Spec.Port}
	return nil
}

func (f *foreignSpoke) ConvertFrom(hub foreignInterface) error {
	ports := hub.(*foreignHub).Spec.Ports
	if len(ports) == 0 {
		return errors.New("no port")
	}
	f.Spec.Port = ports[0]
	return nil
}

func foreignScheme(types map[string]runtime.Object) *runtime.Scheme {
	s := runtime.NewScheme()
	for version, obj := range types {
		s.AddKnownTypeWithName(schema.GroupVersionKind{Group: website.Group, Version: version, Kind: "Website"}, obj)
	}
	return s
}

func TestTypesOfControllerRuntime(t *testing.T) {
	hook := conversion.New(foreignScheme(map[string]runtime.Object{"v1": &foreignSpoke{}, "v2": &foreignHub{}}))
	if err := hook.RegisterHub(&foreignHub{}); err != nil {
		t.Fatal(err)
	}
	up := convert(t, hook, "v2", object("v1", `{"port":81}`))
	if got := fmt.Sprintf("%s", up.Response.ConvertedObjects); !strings.Contains(got, `"ports":[81]`) {
		t.Errorf("%s %s", got, up.Response.Result.Message)
	}
	down := convert(t, hook, "v1", object("v2", `{}`))
	if !strings.Contains(down.Response.Result.Message, "no port") {
		t.Errorf("%+v", down.Response.Result)
	}
}

// plain is a version that cannot be converted.
type plain struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
}

func (p *plain) DeepCopyObject() runtime.Object { other := *p; return &other }

func TestIsConvertible(t *testing.T) {
	type types = map[string]runtime.Object
	for _, c := range []struct {
		types types
		want  bool
		says  string
	}{
		{types{"v1": &website.V1{}, "v2": &website.V2{}}, true, ""},
		{types{"v1": &website.V1{}}, false, ""},
		{types{"v1": &plain{}}, false, ""},
		{types{"v1": &website.V1{}, "v2": &plain{}}, false, "give one of its types the method Hub()"},
		{types{"v1": &foreignHub{}, "v2": &website.V2{}}, false, "several hubs (v1, v2)"},
		{types{"v1": &plain{}, "v2": &website.V2{}, "v3": &website.V1{}}, false, "cannot be converted (v1)"},
	} {
		var example runtime.Object
		for _, example = range c.types {
			break
		}
		got, err := conversion.IsConvertible(foreignScheme(c.types), example)
		if got != c.want || (c.says == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v: %v, %v; want %v, %s", c.types, got, err, c.want, c.says)
		}
	}
	if _, err := conversion.IsConvertible(runtime.NewScheme(), &plain{}); err == nil {
		t.Error("a type that the scheme does not know")
	}
}

// FuzzConversionReview: whatever is sent, the answer is a Status or a ConversionReview for the request.
func FuzzConversionReview(f *testing.F) {
	f.Add("{}")
	f.Add(`{"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": {"uid": "7",
		"desiredAPIVersion": "web.example.org/v1", "objects": [` + object("v2", `{"ports":[1,2]}`) + `, {}, null]}}`)
	hook := conversion.New(website.Scheme())
	if err := hook.RegisterHub(&website.V2{}); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, body string) {
		w := post(hook, body)
		var a answer
		if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil {
			t.Fatalf("%s: %v", w.Body, err)
		}
		if w.Code == http.StatusOK && a.Response.Result.Status == "" {
			t.Fatalf("not an answer: %s", w.Body)
		}
	})
}
