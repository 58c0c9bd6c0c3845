package manager_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
)

// TestRunUntilIdleSeesDeletedCollections checks that RunUntilIdle waits for every object that one request has deleted:
// those that are gone, and those with a finalizer, whose work begins with an event that has not arrived yet.
func TestRunUntilIdleSeesDeletedCollections(t *testing.T) {
	for _, contentType := range []string{runtime.ContentTypeJSON, runtime.ContentTypeProtobuf} {
		t.Run(contentType, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { deleteCollection(t, contentType) })
		})
	}
}

func deleteCollection(t *testing.T, contentType string) {
	config := idleWorld(t, localapi.Options{NoKubernetesService: true}, "first", "keep")
	seedDoomed(t, config)
	lists := &requests{}
	config = rest.CopyConfig(config)
	config.ContentType = contentType
	config.AcceptContentTypes = contentType
	config.Wrap(lists.wrap)
	m := newManager(t, config)
	gone, freed := []string{}, []string{}
	onConfigMaps(t, m, "deletes", func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
		maps := clientset(m).CoreV1().ConfigMaps(r.Namespace)
		cm, err := maps.Get(ctx, r.Name, metav1.GetOptions{})
		switch {
		case err != nil:
			gone = append(gone, r.Name)
		case r.Name == "first": // the one worker has reconciled the others, whose names sort before it
			return reconcile.Result{},
				maps.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "doomed"})
		case cm.DeletionTimestamp != nil:
			freed = append(freed, r.Name)
			_, err := maps.Patch(ctx, r.Name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`),
				metav1.PatchOptions{})
			return reconcile.Result{}, err
		}
		return reconcile.Result{}, nil
	})
	s, err := m.RunUntilIdle(t.Context(), manager.IdleOptions{})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(gone)
	if want := []string{"a-held", "doomed-0", "doomed-1", "doomed-2"}; !slices.Equal(gone, want) {
		t.Errorf("seen to be gone: %q, want %q", gone, want)
	}
	if want := []string{"a-held"}; !slices.Equal(freed, want) {
		t.Errorf("freed: %q, want %q", freed, want)
	}
	if s.Duration > 900*time.Millisecond {
		t.Errorf("it took %v: it waited for something that could not come", s.Duration)
	}
	if lists.metadata != 1 {
		t.Errorf("the server was asked %d times what became of the objects, want once", lists.metadata)
	}
}

// TestRunUntilIdleSeesTheLastFinalizerGo removes the last finalizer of an object. The response has the last state of
// the object, with a version that the cache may already be at. RunUntilIdle must not wait for that version, but for the
// deletion.
func TestRunUntilIdleSeesTheLastFinalizerGo(t *testing.T) {
	for _, contentType := range []string{runtime.ContentTypeJSON, runtime.ContentTypeProtobuf} {
		t.Run(contentType, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { removeLastFinalizer(t, contentType) })
		})
	}
}

func removeLastFinalizer(t *testing.T, contentType string) {
	config := idleWorld(t, localapi.Options{NoKubernetesService: true})
	seedDoomed(t, config)
	maps := kubernetes.NewForConfigOrDie(config).CoreV1().ConfigMaps("default")
	if err := maps.Delete(t.Context(), "a-held", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	config = rest.CopyConfig(config)
	config.ContentType, config.AcceptContentTypes = contentType, contentType
	m := newManager(t, config)
	gone := 0
	onConfigMaps(t, m, "frees", func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
		maps := clientset(m).CoreV1().ConfigMaps(r.Namespace)
		switch cm, err := maps.Get(ctx, r.Name, metav1.GetOptions{}); {
		case err != nil:
			gone++
		case cm.DeletionTimestamp != nil:
			cm.Finalizers = nil
			_, err := maps.Update(ctx, cm, metav1.UpdateOptions{})
			return reconcile.Result{}, err
		}
		return reconcile.Result{}, nil
	})
	if s, err := m.RunUntilIdle(t.Context(), manager.IdleOptions{}); err != nil || gone != 1 ||
		s.Duration > 900*time.Millisecond {
		t.Errorf("the deletion was seen %d times, want once; after %v (%v)", gone, s.Duration, err)
	}
}

func seedDoomed(t *testing.T, config *rest.Config) {
	t.Helper()
	maps := kubernetes.NewForConfigOrDie(config).CoreV1().ConfigMaps("default")
	for i := range 4 {
		cm := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("doomed-%d", i), Labels: map[string]string{"doomed": ""}},
		}
		if i == 3 {
			cm.Name, cm.Finalizers = "a-held", []string{"example.com/held"}
		}
		if _, err := maps.Create(t.Context(), cm, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// requests counts the lists of metadata.
type requests struct {
	mu       sync.Mutex
	metadata int
}

func (r *requests) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		if request.Header.Get("Accept") == "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1" {
			r.mu.Lock()
			r.metadata++
			r.mu.Unlock()
		}
		return next.RoundTrip(request)
	})
}
