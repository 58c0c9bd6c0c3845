package localapi_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/localapi"
)

// encodings are the content types that clients of the tests speak.
var encodings = []string{runtime.ContentTypeJSON, runtime.ContentTypeProtobuf}

// start returns a server, which the end of the test closes, and its client configuration.
func start(t testing.TB, o localapi.Options) (*localapi.Server, *rest.Config) {
	t.Helper()
	server, err := localapi.New(o)
	if err != nil {
		t.Fatalf("new server: %v", err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Errorf("close server: %v", err)
		}
	})
	return server, server.RESTConfig()
}

func clientset(t testing.TB, config *rest.Config) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatalf("new client: %v", err)
	}
	return client
}

func configMap(name string, data ...string) *corev1.ConfigMap {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{}}
	for i := 0; i+1 < len(data); i += 2 {
		cm.Data[data[i]] = data[i+1]
	}
	return cm
}

func TestCreateGetUpdateDelete(t *testing.T) {
	for _, encoding := range encodings {
		t.Run(encoding, func(t *testing.T) {
			_, config := start(t, localapi.Options{})
			config.ContentType = encoding
			ctx, maps := t.Context(), clientset(t, config).CoreV1().ConfigMaps("default")

			created, err := maps.Create(ctx, configMap("a", "k", "1"), metav1.CreateOptions{})
			if err != nil {
				t.Fatalf("create: %v", err)
			}
			if created.UID == "" || created.ResourceVersion == "" || created.CreationTimestamp.IsZero() {
				t.Errorf("created object lacks system metadata: %+v", created.ObjectMeta)
			}
			if len(created.ManagedFields) != 1 {
				t.Errorf("created object has %d managed fields entries, want 1", len(created.ManagedFields))
			}
			if _, err := maps.Create(ctx, configMap("a"), metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
				t.Errorf("second create: %v, want AlreadyExists", err)
			}
			got, err := maps.Get(ctx, "a", metav1.GetOptions{})
			if err != nil {
				t.Fatalf("get: %v", err)
			}
			if diff := cmp.Diff(created, got); diff != "" {
				t.Errorf("get differs from create's answer:\n%s", diff)
			}

			changed := got.DeepCopy()
			changed.Data["k"] = "2"
			updated, err := maps.Update(ctx, changed, metav1.UpdateOptions{})
			if err != nil {
				t.Fatalf("update: %v", err)
			}
			if updated.ResourceVersion == got.ResourceVersion || updated.Data["k"] != "2" {
				t.Errorf("update: version %s → %s, data %v", got.ResourceVersion, updated.ResourceVersion, updated.Data)
			}
			if _, err := maps.Update(ctx, changed, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
				t.Errorf("update from an old version: %v, want Conflict", err)
			}
			same, err := maps.Update(ctx, updated, metav1.UpdateOptions{})
			if err != nil {
				t.Fatalf("update without a change: %v", err)
			}
			if same.ResourceVersion != updated.ResourceVersion {
				t.Errorf("update without a change raised the version from %s to %s", updated.ResourceVersion,
					same.ResourceVersion)
			}

			wrong := types.UID("other")
			err = maps.Delete(ctx, "a", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &wrong}})
			if !apierrors.IsConflict(err) {
				t.Errorf("delete with another UID: %v, want Conflict", err)
			}
			if err := maps.Delete(ctx, "a", metav1.DeleteOptions{}); err != nil {
				t.Fatalf("delete: %v", err)
			}
			if _, err := maps.Get(ctx, "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				t.Errorf("get after delete: %v, want NotFound", err)
			}
		})
	}
}

func TestWatchSeesEveryWriteInOrder(t *testing.T) {
	for _, encoding := range encodings {
		t.Run(encoding, func(t *testing.T) {
			_, config := start(t, localapi.Options{})
			config.ContentType = encoding
			ctx, maps := t.Context(), clientset(t, config).CoreV1().ConfigMaps("default")

			list, err := maps.List(ctx, metav1.ListOptions{})
			if err != nil {
				t.Fatalf("list: %v", err)
			}
			w, err := maps.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
			if err != nil {
				t.Fatalf("watch: %v", err)
			}
			defer w.Stop()
			a, err := maps.Create(ctx, configMap("a"), metav1.CreateOptions{})
			if err != nil {
				t.Fatalf("create: %v", err)
			}
			a.Data = map[string]string{"k": "v"}
			if _, err := maps.Update(ctx, a, metav1.UpdateOptions{}); err != nil {
				t.Fatalf("update: %v", err)
			}
			if err := maps.Delete(ctx, "a", metav1.DeleteOptions{}); err != nil {
				t.Fatalf("delete: %v", err)
			}
			for _, want := range []watch.EventType{watch.Added, watch.Modified, watch.Deleted} {
				if e := <-w.ResultChan(); e.Type != want {
					t.Fatalf("watch event is %s %v, want %s", e.Type, e.Object, want)
				}
			}
		})
	}
}

func TestCloseEndsWatches(t *testing.T) {
	server, config := start(t, localapi.Options{})
	w, err := clientset(t, config).CoreV1().ConfigMaps("").Watch(context.Background(), metav1.ListOptions{})
	if err != nil {
		t.Fatalf("watch: %v", err)
	}
	if err := server.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
	for range w.ResultChan() { //nolint:revive // ends when the watch does
	}
	if _, err := clientset(t, config).CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); err == nil {
		t.Error("a closed server answered a list")
	}
}
