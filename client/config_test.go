package client_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
)

// A config may ask for protobuf, as the configs of clientsets do.
func TestConfigOfAClientset(t *testing.T) {
	inWorld(t, client.Options{}, func(w *world) {
		config := w.api.RESTConfig()
		config.ContentType = runtime.ContentTypeProtobuf
		config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
		c, err := client.New(config, client.Options{})
		w.must(err)
		w.must(c.Create(w.ctx, configMap("a")))
		var read corev1.ConfigMap
		w.must(c.Get(w.ctx, keyOf(configMap("a")), &read))
		if read.Name != "a" {
			t.Errorf("read %+v", read)
		}
	})
}

// TestContentTypes: built-in kinds are protobuf unless the config asks for something else; metadata is JSON.
//
// Source: k8s.io/client-go v0.37.2 rest/request.go UseProtobufAsDefault.
func TestContentTypes(t *testing.T) {
	const (
		protobuf = runtime.ContentTypeProtobuf
		json     = runtime.ContentTypeJSON
	)
	for name, test := range map[string]struct {
		config       rest.ContentConfig
		sent, accept string
	}{
		"default":      {rest.ContentConfig{}, protobuf, protobuf + "," + json},
		"protobuf":     {rest.ContentConfig{ContentType: protobuf}, protobuf, protobuf + "," + json},
		"JSON":         {rest.ContentConfig{ContentType: json}, json, json},
		"accepts JSON": {rest.ContentConfig{AcceptContentTypes: json}, json, json},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, client.Options{}, func(w *world) {
				config := w.api.RESTConfig()
				config.ContentConfig = test.config
				var last http.Header
				config.Wrap(func(next http.RoundTripper) http.RoundTripper {
					return tripper(func(r *http.Request) (*http.Response, error) {
						last = r.Header
						return next.RoundTrip(r)
					})
				})
				c, err := client.New(config, client.Options{})
				w.must(err)
				w.must(c.Create(w.ctx, configMap("a")))
				if got := last.Get("Content-Type"); got != test.sent {
					t.Errorf("created as %q, want %q", got, test.sent)
				}
				w.must(c.Get(w.ctx, keyOf(configMap("a")), &corev1.ConfigMap{}))
				if got := last.Get("Accept"); got != test.accept {
					t.Errorf("read as %q, want %q", got, test.accept)
				}
				bare := &metav1.PartialObjectMetadata{}
				bare.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
				w.must(c.Get(w.ctx, keyOf(configMap("a")), bare))
				if got := last.Get("Accept"); got != json+";as=PartialObjectMetadata;g=meta.k8s.io;v=v1" {
					t.Errorf("metadata read as %q", got)
				}
			})
		})
	}
}

// flow is a custom type with the methods of a built-in one.
type flow struct{ corev1.ConfigMap }

func (f *flow) DeepCopyObject() runtime.Object { return &flow{*f.DeepCopy()} }

// TestKindsThatAreNotProtobuf creates objects that servers, or their own codec, do not support in protobuf.
func TestKindsThatAreNotProtobuf(t *testing.T) {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Flow"}, &flow{})
	if err := appsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	var sent string
	config := &rest.Config{Host: "http://api", Transport: tripper(func(r *http.Request) (*http.Response, error) {
		if r.Method == http.MethodPost {
			sent = r.Header.Get("Content-Type")
		}
		return nil, errors.New("sent")
	})}
	gvr := map[string]string{"Flow": "flows", "ControllerRevision": "controllerrevisions", "Deployment": "deployments"}
	mapper := meta.NewDefaultRESTMapper(nil)
	for kind, plural := range gvr {
		gv := appsv1.SchemeGroupVersion
		if kind == "Flow" {
			gv = schema.GroupVersion{Group: "example.com", Version: "v1"}
		}
		mapper.AddSpecific(gv.WithKind(kind), gv.WithResource(plural), gv.WithResource(plural), meta.RESTScopeNamespace)
	}
	c, err := client.New(config, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		t.Fatal(err)
	}
	name := metav1.ObjectMeta{Namespace: "default", Name: "a"}
	for obj, want := range map[client.Object]string{
		&flow{corev1.ConfigMap{ObjectMeta: name}}: runtime.ContentTypeJSON,
		&appsv1.ControllerRevision{
			ObjectMeta: name, Data: runtime.RawExtension{Object: &corev1.ConfigMap{}},
		}: runtime.ContentTypeJSON,
		&appsv1.Deployment{ObjectMeta: name}: runtime.ContentTypeProtobuf,
	} {
		if sent = ""; c.Create(t.Context(), obj) == nil || sent != want {
			t.Errorf("a %T is sent as %q, want %q", obj, sent, want)
		}
	}
}

// TestMalformedProtobuf: the server answers with bytes that are not an object, or with an object of another kind.
func TestMalformedProtobuf(t *testing.T) {
	unknown := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: "Secret"}, Raw: []byte{}}
	secret, err := unknown.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	for what, answer := range map[string]string{
		"a page": "<html>oops", "the start of an object": "k8s\x00", "another kind": "k8s\x00" + string(secret),
	} {
		inWorld(t, client.Options{}, func(w *world) {
			config := w.api.RESTConfig()
			config.Wrap(func(next http.RoundTripper) http.RoundTripper {
				return tripper(func(r *http.Request) (*http.Response, error) {
					if !strings.Contains(r.URL.Path, "/configmaps") {
						return next.RoundTrip(r)
					}
					return &http.Response{
						StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {runtime.ContentTypeProtobuf}},
						Body: io.NopCloser(strings.NewReader(answer)), Request: r,
					}, nil
				})
			})
			c, err := client.New(config, client.Options{})
			w.must(err)
			if err := c.Get(w.ctx, keyOf(configMap("a")), &corev1.ConfigMap{}); err == nil {
				t.Errorf("%s is taken for a ConfigMap", what)
			}
			if err := c.List(w.ctx, &corev1.ConfigMapList{}); err == nil {
				t.Errorf("%s is taken for a list", what)
			}
		})
	}
}
