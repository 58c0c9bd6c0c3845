package client_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
)

func TestCacheForRestrictsWhatCachesDoesNotMention(t *testing.T) {
	o := client.Options{
		Caches: []client.CacheOf{{Object: &corev1.Secret{}}},
		CacheFor: func(kind schema.GroupVersionKind, namespaced bool) informer.InformerOptions {
			if !namespaced {
				t.Errorf("%s is said to be cluster-scoped", kind)
			}
			return informer.InformerOptions{LabelSelector: "app=web"}
		},
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "unlabelled"}}
	inWorld(t, o, func(w *world) {
		w.wantNames("in")
		var secrets corev1.SecretList
		w.must(w.List(w.ctx, &secrets))
		if len(secrets.Items) != 1 {
			t.Errorf("%d secrets, want the unlabelled one", len(secrets.Items))
		}
	}, configMap("in", "app", "web"), configMap("out"), secret)
}
