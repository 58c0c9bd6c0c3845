package localapi_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/internal/heapsize"
	"github.com/flyball-dev/flyball/localapi"
)

// TestHistoryIsBoundedInBytes: many small changes of a large object hold no more than HistoryBytes and what is decoded
// and encoded of them, although a watch follows. A watch sees every change.
func TestHistoryIsBoundedInBytes(t *testing.T) {
	const size, limit, patches = 30_000, 4 << 20, 1000
	_, config := start(t, localapi.Options{HistoryBytes: limit})
	maps := clientset(t, config).CoreV1().ConfigMaps("default")
	created := mustCreate(t, maps, configMap("large", "k", strings.Repeat("x", size)))
	w, err := maps.Watch(t.Context(), metav1.ListOptions{ResourceVersion: created.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	before := heapsize.Now()
	for n := range patches {
		patch := fmt.Sprintf(`{"metadata":{"annotations":{"n":"%d"}}}`, n)
		changed, err := maps.Patch(t.Context(), "large", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
		event := <-w.ResultChan()
		if seen, ok := event.Object.(*corev1.ConfigMap); !ok || seen.ResourceVersion != changed.ResourceVersion {
			t.Fatalf("after change %d the watch got %+v", n, event)
		}
	}
	if grown := heapsize.Now() - before; grown > 4*limit {
		t.Errorf("%d changes of %d bytes hold %d MB, want at most %d", patches, size, grown>>20, 4*limit>>20)
	}
	if w, err = maps.Watch(t.Context(), metav1.ListOptions{ResourceVersion: created.ResourceVersion}); err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	if err := apierrors.FromObject((<-w.ResultChan()).Object); !apierrors.IsResourceExpired(err) {
		t.Error("a watch from the first version gets events, want Expired")
	}
	runtime.KeepAlive(config)
}
