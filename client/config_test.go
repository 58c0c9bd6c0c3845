package client_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/client"
)

// A config that asks for protobuf, as those of clientsets do, is as good as any: a Cluster talks JSON.
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
