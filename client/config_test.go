package client_test

import (
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
)

// A config that asks for protobuf, as those of clientsets do, is as good as any.
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

// TestContentTypes: built-in kinds are protobuf unless the config asks for something else, bare metadata is JSON.
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
