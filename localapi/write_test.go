package localapi_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	"github.com/flyball-dev/flyball/localapi"
)

func ptrTo[T any](v T) *T { return &v }

func evictionOf(name string) *policyv1.Eviction {
	return &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func TestGeneratedNames(t *testing.T) {
	_, config := start(t, localapi.Options{})
	maps := clientset(t, config).CoreV1().ConfigMaps("default")
	seen := map[string]bool{}
	for range 100 {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "made-"}}
		created := mustCreate(t, maps, cm)
		if !strings.HasPrefix(created.Name, "made-") || len(created.Name) != len("made-")+5 || seen[created.Name] {
			t.Fatalf("generated name %q", created.Name)
		}
		seen[created.Name] = true
	}
	long := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: strings.Repeat("x", 100)}}
	if created := mustCreate(t, maps, long); len(created.Name) != 63 {
		t.Errorf("generated name has %d characters, want 63", len(created.Name))
	}
}

func TestSeededServersMakeTheSameIdentities(t *testing.T) {
	var identities []string
	for range 2 {
		_, config := start(t, localapi.Options{Rand: rand.NewPCG(1, 2)})
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "made-"}}
		created := mustCreate(t, clientset(t, config).CoreV1().ConfigMaps("default"), cm)
		identities = append(identities, created.Name+" "+string(created.UID))
	}
	if identities[0] != identities[1] {
		t.Errorf("two servers with one seed made %q and %q", identities[0], identities[1])
	}
}

func TestInvalidObjectsAreRefusedWithTheirCauses(t *testing.T) {
	_, config := start(t, localapi.Options{})
	client := clientset(t, config)
	maps := client.CoreV1().ConfigMaps("default")
	cm := configMap("Not A Name")
	cm.Labels = map[string]string{"bad key": "v"}
	_, err := maps.Create(t.Context(), cm, metav1.CreateOptions{})
	if !apierrors.IsInvalid(err) {
		t.Fatalf("create: %v, want Invalid", err)
	}
	fields := map[string]bool{}
	for _, cause := range err.(apierrors.APIStatus).Status().Details.Causes {
		fields[cause.Field] = true
	}
	if !fields["metadata.name"] || !fields["metadata.labels"] {
		t.Errorf("causes are of fields %v, want name and labels", fields)
	}
	versioned := configMap("a")
	versioned.ResourceVersion = "7"
	if _, err := maps.Create(t.Context(), versioned, metav1.CreateOptions{}); err == nil ||
		!strings.Contains(err.Error(), "resourceVersion should not be set on objects to be created") {
		t.Errorf("create with a version: %v", err)
	}
	elsewhere := configMap("a")
	elsewhere.Namespace = "kube-system"
	if _, err := maps.Create(t.Context(), elsewhere, metav1.CreateOptions{}); !apierrors.IsBadRequest(err) {
		t.Errorf("create in another namespace than the URL's: %v, want a bad request", err)
	}
	owned := configMap("a")
	owner := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "o", UID: "1", Controller: ptrTo(true)}
	other := owner
	other.UID = "2"
	owned.OwnerReferences = []metav1.OwnerReference{owner, other}
	if _, err := maps.Create(t.Context(), owned, metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("create with two controllers: %v, want Invalid", err)
	}
}

func TestUpdateRules(t *testing.T) {
	_, config := start(t, localapi.Options{})
	client := clientset(t, config)
	maps := client.CoreV1().ConfigMaps("default")
	if _, err := maps.Update(t.Context(), configMap("none"), metav1.UpdateOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("update of a missing object: %v, want NotFound", err)
	}
	created := mustCreate(t, maps, configMap("a", "k", "v"))
	blind := configMap("a", "k", "blind")
	if got := mustUpdate(t, maps, blind); got.UID != created.UID || got.Data["k"] != "blind" ||
		!got.CreationTimestamp.Equal(&created.CreationTimestamp) {
		t.Errorf("update without a version: UID %s → %s, data %v", created.UID, got.UID, got.Data)
	}
	other := configMap("a")
	other.UID = "other"
	if _, err := maps.Update(t.Context(), other, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("update with another UID: %v, want Conflict", err)
	}

	leases := client.CoordinationV1().Leases("default")
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "l"}}
	if _, err := leases.Update(t.Context(), lease, metav1.UpdateOptions{}); err != nil {
		t.Errorf("update that creates a lease: %v", err)
	}
	if _, err := leases.Update(t.Context(), lease, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("update of a lease without a version: %v, want Invalid", err)
	}
}

func TestConcurrentUpdatesLoseNothing(t *testing.T) {
	_, config := start(t, localapi.Options{HistoryLimit: 50})
	maps := clientset(t, config).CoreV1().ConfigMaps("default")
	mustCreate(t, maps, configMap("counter", "n", "0"))
	const writers, increments = 8, 25
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for range increments {
				forever := retry.DefaultRetry
				forever.Steps = 1000
				err := retry.RetryOnConflict(forever, func() error {
					cm, err := maps.Get(t.Context(), "counter", metav1.GetOptions{})
					if err != nil {
						return err
					}
					var n int
					if _, err := fmt.Sscan(cm.Data["n"], &n); err != nil {
						return err
					}
					cm.Data["n"] = fmt.Sprint(n + 1)
					_, err = maps.Update(t.Context(), cm, metav1.UpdateOptions{})
					return err
				})
				if err != nil {
					t.Errorf("increment: %v", err)
				}
			}
		})
	}
	wg.Wait()
	if cm, err := maps.Get(t.Context(), "counter", metav1.GetOptions{}); err != nil ||
		cm.Data["n"] != fmt.Sprint(writers*increments) {
		t.Errorf("counter is %v (%v), want %d", cm.Data, err, writers*increments)
	}
}

func TestServicesGetDistinctAddresses(t *testing.T) {
	_, config := start(t, localapi.Options{})
	services := clientset(t, config).CoreV1().Services("default")
	create := func(name, ip string) (*corev1.Service, error) {
		return services.Create(t.Context(), &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       corev1.ServiceSpec{ClusterIP: ip, Ports: []corev1.ServicePort{{Port: 80}}},
		}, metav1.CreateOptions{})
	}
	a, err := create("a", "")
	if err != nil || a.Spec.ClusterIP == "" {
		t.Fatalf("create: %v, cluster IP %q", err, a.Spec.ClusterIP)
	}
	if b, err := create("b", ""); err != nil || b.Spec.ClusterIP == a.Spec.ClusterIP {
		t.Fatalf("second service: %v, cluster IP %q", err, b.Spec.ClusterIP)
	}
	if _, err := create("c", a.Spec.ClusterIP); !apierrors.IsInvalid(err) {
		t.Errorf("service with a taken address: %v, want Invalid", err)
	}
	if err := services.Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := create("c", a.Spec.ClusterIP); err != nil {
		t.Errorf("service with an address that was given back: %v", err)
	}
}

func TestTenantsOnOneStore(t *testing.T) {
	store := memoryStore(t)
	_, a := start(t, localapi.Options{Storage: store, Tenant: "a"})
	_, ab := start(t, localapi.Options{Storage: store, Tenant: "ab"})
	mustCreate(t, clientset(t, a).CoreV1().ConfigMaps("default"), configMap("mine"))
	got, _ := names(t, clientset(t, ab).CoreV1().ConfigMaps(""), metav1.ListOptions{})
	wantNames(t, got)
	if _, err := localapi.New(localapi.Options{Tenant: "a/b"}); err == nil {
		t.Error("tenant a/b accepted")
	}
}

func TestReopenedStoreContinues(t *testing.T) {
	store := memoryStore(t)
	first, config := start(t, localapi.Options{Storage: store})
	maps := clientset(t, config).CoreV1().ConfigMaps("default")
	a := mustCreate(t, maps, configMap("a", "k", "v"))
	b := mustCreate(t, maps, configMap("b"))
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	_, config = start(t, localapi.Options{Storage: withoutTags{store}})
	maps = clientset(t, config).CoreV1().ConfigMaps("default")
	got, err := maps.Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil || got.ResourceVersion != a.ResourceVersion || got.UID != a.UID || got.Data["k"] != "v" ||
		len(got.ManagedFields) != 1 {
		t.Errorf("object after reopening: %v, %+v", err, got)
	}
	w, err := maps.Watch(t.Context(), metav1.ListOptions{ResourceVersion: a.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	if e := <-w.ResultChan(); e.Object.(*corev1.ConfigMap).UID != b.UID {
		t.Errorf("the watch continued with %+v, want %s", e, b.Name)
	}
}
