package localapi_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

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

// TestHistoryAge: the history is kept for its age, and for less than twice that. A list of what was forgotten is
// continued with the token of the error, also if its resource did not change.
//
// Source: k8s.io/apiserver v0.37.2 pkg/storage/etcd3/compact.go, k8s.io/kubernetes v1.37.2
// test/e2e/apimachinery/chunking.go.
func TestHistoryAge(t *testing.T) {
	const age, second = 5 * time.Minute, time.Second
	for name, c := range map[string]struct {
		kept    []time.Duration // when the list is asked for and continued, since its first page
		expired time.Duration   // when it is not
	}{
		"busy":               {kept: []time.Duration{age / 5, age - second, age, 2*age - second}, expired: 2 * age},
		"idle":               {kept: []time.Duration{2*age - second}, expired: 3*age - second},
		"idle for long":      {expired: 2 * age},
		"asked in the midst": {kept: []time.Duration{age + age/2, 2 * age}, expired: 2*age + age/2},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, localapi.Options{HistoryAge: age},
				func(t *testing.T, _ *localapi.Server, client kubernetes.Interface) {
					maps := client.CoreV1().ConfigMaps("default")
					for i := range 4 {
						mustCreate(t, maps, configMap(fmt.Sprintf("m%d", i)))
					}
					_, first := names(t, maps, metav1.ListOptions{Limit: 2})
					if _, err := client.CoreV1().Secrets("default").Create(t.Context(),
						&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}}, metav1.CreateOptions{}); err != nil {
						t.Fatal(err)
					}
					begin, next := time.Now(), metav1.ListOptions{Limit: 2, Continue: first.Continue}
					for _, at := range c.kept {
						time.Sleep(time.Until(begin.Add(at)))
						if _, err := maps.List(t.Context(), next); err != nil {
							t.Fatalf("after %v: %v", at, err)
						}
					}
					time.Sleep(time.Until(begin.Add(c.expired)))
					_, err := maps.List(t.Context(), next)
					if !apierrors.IsResourceExpired(err) {
						t.Fatalf("after %v: %v, want Expired", c.expired, err)
					}
					wantEvents(t, watchMaps(t, maps, metav1.ListOptions{ResourceVersion: first.ResourceVersion}),
						"ERROR 410 Expired", "closed")
					got, rest := names(t, maps,
						metav1.ListOptions{Continue: err.(apierrors.APIStatus).Status().Continue})
					wantNames(t, got, "m2", "m3")
					if rest.ResourceVersion == first.ResourceVersion {
						t.Error("the rest of the list has the version that was forgotten")
					}
				})
		})
	}
}

// TestHistoryWithoutAge: without a bound, nothing is forgotten because of its age.
func TestHistoryWithoutAge(t *testing.T) {
	inBubble(t, localapi.Options{}, func(t *testing.T, _ *localapi.Server, client kubernetes.Interface) {
		maps := client.CoreV1().ConfigMaps("default")
		first := mustCreate(t, maps, configMap("a"))
		mustDelete(t, maps, "a")
		time.Sleep(24 * time.Hour)
		mustCreate(t, maps, configMap("a"))
		w := watchMaps(t, maps, metav1.ListOptions{ResourceVersion: first.ResourceVersion})
		wantEvents(t, w, "DELETED a", "ADDED a")
	})
}
