package client_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/client"
)

// TestContradictionsOfOtherCaches: a cache that the server contradicts is listed anew, however many objects of another
// cache it contradicts.
func TestContradictionsOfOtherCaches(t *testing.T) {
	var objects []runtime.Object
	for i := range 1100 {
		objects = append(objects, configMap(fmt.Sprint("a", i)))
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "s"}}
	inWorld(t, client.Options{}, func(w *world) {
		w.set(func() { w.lag = time.Minute })
		w.warm(&corev1.ConfigMapList{}, &corev1.SecretList{})
		refused := func(obj client.Object) {
			if err := w.Delete(w.ctx, obj); !apierrors.IsNotFound(err) {
				t.Fatal(err)
			}
		}
		for range objects[1:] {
			obj := objects[0].(client.Object)
			objects = objects[1:]
			w.must(w.Delete(w.ctx, obj))
			refused(obj)
		}
		w.must(w.Delete(w.ctx, secret))
		refused(secret)
		time.Sleep(1100 * time.Millisecond)
		w.api.Audit().Reset()
		refused(secret)
		synctest.Wait()
		if n := w.calls("list"); n == 0 {
			t.Error("the cache of secrets is not listed anew")
		}
	}, append(objects, secret)...)
}
