package localapi_test

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/flyball-dev/flyball/localapi"
)

func newPod(name, node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "c", Image: "image"}}},
	}
}

func createPod(t *testing.T, client kubernetes.Interface, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	created, err := client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("create pod %s: %v", pod.Name, err)
	}
	return created
}

func TestPodOnANodeIsDeletedGracefully(t *testing.T) {
	inBubble(t, localapi.Options{}, func(t *testing.T, _ *localapi.Server, client kubernetes.Interface) {
		pods := client.CoreV1().Pods("default")
		created := createPod(t, client, newPod("p", "node"))
		w, err := pods.Watch(t.Context(), metav1.ListOptions{ResourceVersion: created.ResourceVersion})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
		begin := time.Now()
		if err := pods.Delete(t.Context(), "p", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		pod, err := pods.Get(t.Context(), "p", metav1.GetOptions{})
		if err != nil {
			t.Fatalf("a pod in its grace period: %v", err)
		}
		if pod.DeletionGracePeriodSeconds == nil || *pod.DeletionGracePeriodSeconds != 30 ||
			pod.Generation != created.Generation+1 ||
			!pod.DeletionTimestamp.Equal(&metav1.Time{Time: begin.Add(30 * time.Second).Truncate(time.Second)}) {
			t.Errorf("deletion: grace %v, timestamp %v (deleted at %v), generation %d after %d",
				pod.DeletionGracePeriodSeconds, pod.DeletionTimestamp, begin, pod.Generation, created.Generation)
		}

		longer, shorter, none := int64(60), int64(5), int64(0)
		if err := pods.Delete(t.Context(), "p", metav1.DeleteOptions{GracePeriodSeconds: &longer}); err != nil {
			t.Fatal(err)
		}
		if again, _ := pods.Get(t.Context(), "p", metav1.GetOptions{}); again.ResourceVersion != pod.ResourceVersion {
			t.Error("a longer grace period changed a pod that is being deleted")
		}
		if err := pods.Delete(t.Context(), "p", metav1.DeleteOptions{GracePeriodSeconds: &shorter}); err != nil {
			t.Fatal(err)
		}
		if again, _ := pods.Get(t.Context(), "p", metav1.GetOptions{}); *again.DeletionGracePeriodSeconds != 5 ||
			again.DeletionTimestamp.Sub(pod.DeletionTimestamp.Time) != -25*time.Second {
			t.Errorf("shortened deletion: grace %d, timestamp %v", *again.DeletionGracePeriodSeconds,
				again.DeletionTimestamp)
		}
		if err := pods.Delete(t.Context(), "p", metav1.DeleteOptions{GracePeriodSeconds: &none}); err != nil {
			t.Fatal(err)
		}
		if _, err := pods.Get(t.Context(), "p", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("pod after a delete without grace: %v, want NotFound", err)
		}
		wantEvents(t, w, "MODIFIED p", "MODIFIED p", "MODIFIED p", "DELETED p")
	})
}

func TestPodWithoutANodeIsMarkedAndRemovedAtOnce(t *testing.T) {
	inBubble(t, localapi.Options{}, func(t *testing.T, _ *localapi.Server, client kubernetes.Interface) {
		pods := client.CoreV1().Pods("default")
		created := createPod(t, client, newPod("p", ""))
		w, err := pods.Watch(t.Context(), metav1.ListOptions{ResourceVersion: created.ResourceVersion})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
		if err := pods.Delete(t.Context(), "p", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		wantEvents(t, w, "MODIFIED p", "DELETED p")
	})
}

func TestFinalizersKeepADeletedObject(t *testing.T) {
	inBubble(t, localapi.Options{}, func(t *testing.T, _ *localapi.Server, client kubernetes.Interface) {
		maps := client.CoreV1().ConfigMaps("default")
		cm := configMap("a")
		cm.Finalizers = []string{"example.com/one", "example.com/two"}
		created := mustCreate(t, maps, cm)
		w := watchMaps(t, maps, metav1.ListOptions{ResourceVersion: created.ResourceVersion})
		mustDelete(t, maps, "a")
		got, err := maps.Get(t.Context(), "a", metav1.GetOptions{})
		if err != nil || got.DeletionTimestamp == nil || *got.DeletionGracePeriodSeconds != 0 {
			t.Fatalf("deleted object with finalizers: %v, %+v", err, got)
		}
		mustDelete(t, maps, "a")
		wantEvents(t, w, "MODIFIED a")

		if _, err := maps.Create(t.Context(), configMap("a"),
			metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) ||
			err.Error() != `object is being deleted: configmaps "a" already exists` {
			t.Errorf("create over an object that is being deleted: %v", err)
		}
		got.Finalizers = append(got.Finalizers, "example.com/three")
		if _, err := maps.Update(t.Context(), got, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) {
			t.Errorf("new finalizer on an object that is being deleted: %v, want Invalid", err)
		}
		got.Finalizers, got.DeletionTimestamp = []string{"example.com/two"}, nil
		got = mustUpdate(t, maps, got)
		if got.DeletionTimestamp == nil {
			t.Error("an update took the deletion timestamp away")
		}
		got.Finalizers = nil
		mustUpdate(t, maps, got)
		wantEvents(t, w, "MODIFIED a", "DELETED a")
	})
}

func TestPropagationPolicies(t *testing.T) {
	_, config := start(t, localapi.Options{})
	maps := clientset(t, config).CoreV1().ConfigMaps("default")
	for policy, finalizer := range map[metav1.DeletionPropagation]string{
		metav1.DeletePropagationOrphan: "orphan", metav1.DeletePropagationForeground: "foregroundDeletion",
	} {
		created := mustCreate(t, maps, configMap("a"))
		if err := maps.Delete(t.Context(), "a", metav1.DeleteOptions{PropagationPolicy: &policy}); err != nil {
			t.Fatal(err)
		}
		got, err := maps.Get(t.Context(), "a", metav1.GetOptions{})
		if err != nil || got.DeletionTimestamp == nil || !slices.Equal(got.Finalizers, []string{finalizer}) {
			t.Fatalf("%s deletion: %v, finalizers %v, timestamp %v", policy, err, got.Finalizers, got.DeletionTimestamp)
		}
		if got.UID != created.UID {
			t.Errorf("%s deletion changed the UID", policy)
		}
		background := metav1.DeletePropagationBackground
		if err := maps.Delete(t.Context(), "a", metav1.DeleteOptions{PropagationPolicy: &background}); err != nil {
			t.Fatal(err)
		}
		if _, err := maps.Get(t.Context(), "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("after a further delete in the background: %v, want NotFound", err)
		}
	}
	mustCreate(t, maps, configMap("a"))
	nonsense := metav1.DeletionPropagation("Nonsense")
	if err := maps.Delete(t.Context(), "a",
		metav1.DeleteOptions{PropagationPolicy: &nonsense}); !apierrors.IsInvalid(err) {
		t.Errorf("unknown policy: %v, want Invalid", err)
	}
}

func TestDeletePreconditions(t *testing.T) {
	_, config := start(t, localapi.Options{})
	maps := clientset(t, config).CoreV1().ConfigMaps("default")
	created := mustCreate(t, maps, configMap("a"))
	old := created.ResourceVersion
	created.Data = map[string]string{"k": "v"}
	updated := mustUpdate(t, maps, created)
	remove := func(p metav1.Preconditions) error {
		return maps.Delete(t.Context(), "a", metav1.DeleteOptions{Preconditions: &p})
	}
	if err := remove(metav1.Preconditions{ResourceVersion: &old}); !apierrors.IsConflict(err) {
		t.Errorf("old version: %v, want Conflict", err)
	}
	if err := remove(metav1.Preconditions{ResourceVersion: &updated.ResourceVersion, UID: &updated.UID}); err != nil {
		t.Errorf("current version and UID: %v", err)
	}
	if err := remove(metav1.Preconditions{UID: &updated.UID}); !apierrors.IsNotFound(err) {
		t.Errorf("deleted object: %v, want NotFound", err)
	}
}

func TestDeleteCollection(t *testing.T) {
	_, config := start(t, localapi.Options{})
	maps := clientset(t, config).CoreV1().ConfigMaps("default")
	for _, name := range []string{"a", "b", "c"} {
		cm := configMap(name)
		if name != "b" {
			cm.Labels = map[string]string{"go": "away"}
		}
		mustCreate(t, maps, cm)
	}
	dry := metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}
	if err := maps.DeleteCollection(t.Context(), dry, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	got, _ := names(t, maps, metav1.ListOptions{})
	wantNames(t, got, "a", "b", "c")
	if err := maps.DeleteCollection(t.Context(), metav1.DeleteOptions{},
		metav1.ListOptions{LabelSelector: "go=away"}); err != nil {
		t.Fatal(err)
	}
	got, _ = names(t, maps, metav1.ListOptions{})
	wantNames(t, got, "b")
}

func TestNamespaceRules(t *testing.T) {
	_, config := start(t, localapi.Options{})
	client := clientset(t, config)
	_, err := client.CoreV1().ConfigMaps("nowhere").Create(t.Context(), configMap("a"), metav1.CreateOptions{})
	if !apierrors.IsNotFound(err) || err.Error() != `namespaces "nowhere" not found` {
		t.Errorf("create in a missing namespace: %v", err)
	}
	if err := client.CoreV1().Namespaces().Delete(t.Context(), "default",
		metav1.DeleteOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("delete of namespace default: %v, want Forbidden", err)
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}}
	if _, err := client.CoreV1().Namespaces().Create(t.Context(), ns, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := client.CoreV1().Namespaces().Delete(t.Context(), "team", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	got, err := client.CoreV1().Namespaces().Get(t.Context(), "team", metav1.GetOptions{})
	if err != nil || got.Status.Phase != corev1.NamespaceTerminating || got.DeletionTimestamp == nil ||
		got.DeletionGracePeriodSeconds != nil {
		t.Errorf("deleted namespace: %v, phase %s, timestamp %v", err, got.Status.Phase, got.DeletionTimestamp)
	}
	_, err = client.CoreV1().ConfigMaps("team").Create(t.Context(), configMap("a"), metav1.CreateOptions{})
	if !apierrors.IsForbidden(err) || !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		t.Errorf("create in a terminating namespace: %v, want Forbidden with its cause", err)
	}
	got.Spec.Finalizers = nil
	if _, err := client.CoreV1().Namespaces().Finalize(t.Context(), got, metav1.UpdateOptions{}); err != nil {
		t.Fatalf("finalize: %v", err)
	}
	if _, err := client.CoreV1().Namespaces().Get(t.Context(), "team",
		metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("finalized namespace: %v, want NotFound", err)
	}
}
