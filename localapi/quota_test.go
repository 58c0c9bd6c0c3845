package localapi_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/storage/memory"
)

// quotaOf is a quota of quantities, written name=quantity.
func quotaOf(name string, hard ...string) *corev1.ResourceQuota {
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}}
	q.Spec.Hard = corev1.ResourceList{}
	for _, h := range hard {
		key, value, _ := strings.Cut(h, "=")
		q.Spec.Hard[corev1.ResourceName(key)] = resource.MustParse(value)
	}
	return q
}

func core(s *localapi.Test) typed.CoreV1Interface {
	return kubernetes.NewForConfigOrDie(s.RESTConfig()).CoreV1()
}

// wantUsed checks the quantities of a quota's status, written name=used/hard.
func wantUsed(t *testing.T, c typed.CoreV1Interface, name string, want ...string) {
	t.Helper()
	q, err := c.ResourceQuotas("default").Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range want {
		key, _, _ := strings.Cut(w, "=")
		used, counted := q.Status.Used[corev1.ResourceName(key)]
		hard := q.Status.Hard[corev1.ResourceName(key)]
		if got := fmt.Sprintf("%s=%s/%s", key, used.String(), hard.String()); got != w || !counted {
			t.Errorf("%s: %s, want %s", name, got, w)
		}
	}
}

// TestQuotaStatus: the status of a quota is right as soon as a request is answered: for objects that were there before
// it, after every kind of write, and whoever else has written it.
func TestQuotaStatus(t *testing.T) {
	s := localapi.NewTest(t, map1("a"), map1("b"))
	c, ctx := core(s), t.Context()
	quotas, maps := c.ResourceQuotas("default"), c.ConfigMaps("default")
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(quotas.Create(ctx, quotaOf("q", "configmaps=3", "count/resourcequotas=2"), metav1.CreateOptions{}))
	wantUsed(t, c, "q", "configmaps=2/3", "count/resourcequotas=1/2")

	must(maps.Create(ctx, map1("c"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}))
	wantUsed(t, c, "q", "configmaps=2/3")
	must(maps.Create(ctx, map1("c"), metav1.CreateOptions{}))
	wantUsed(t, c, "q", "configmaps=3/3")

	_, err := maps.Create(ctx, map1("d"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	const want = `configmaps "d" is forbidden: exceeded quota: q, requested: configmaps=1, used: configmaps=3, ` +
		`limited: configmaps=3`
	if !apierrors.IsForbidden(err) || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}

	must(quotas.Patch(ctx, "q", types.MergePatchType, []byte(`{"spec":{"hard":{"configmaps":"4"}}}`),
		metav1.PatchOptions{}))
	wantUsed(t, c, "q", "configmaps=3/4")
	if _, err := maps.Create(ctx, map1("c"), metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		t.Errorf("the same again: %v", err)
	}
	wantUsed(t, c, "q", "configmaps=3/4")

	must(nil, maps.Delete(ctx, "c", metav1.DeleteOptions{}))
	wantUsed(t, c, "q", "configmaps=2/4")
	must(quotas.Patch(ctx, "q", types.MergePatchType, []byte(`{"status":{"used":{"configmaps":"4"}}}`),
		metav1.PatchOptions{}, "status"))
	wantUsed(t, c, "q", "configmaps=2/4")
	must(nil, maps.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}))
	wantUsed(t, c, "q", "configmaps=0/4")

	must(quotas.Create(ctx, quotaOf("r", "secrets=1"), metav1.CreateOptions{}))
	wantUsed(t, c, "q", "count/resourcequotas=2/2")
	if _, err := quotas.Create(ctx, quotaOf("x"), metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("a quota too many: %v", err)
	}
	must(nil, quotas.Delete(ctx, "r", metav1.DeleteOptions{}))
	wantUsed(t, c, "q", "count/resourcequotas=1/2")
	must(nil, quotas.Delete(ctx, "q", metav1.DeleteOptions{}))
	must(quotas.Create(ctx, quotaOf("q", "configmaps=0"), metav1.CreateOptions{}))
	wantUsed(t, c, "q", "configmaps=0/0")
}

func map1(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}}
}

// TestQuotaRestart: a server counts what an earlier one has left, whatever it has written of it.
func TestQuotaRestart(t *testing.T) {
	store := memory.New()
	first := localapi.NewTestWith(t, localapi.Options{Storage: store}, map1("a"))
	if _, err := core(first).ResourceQuotas("default").Create(t.Context(), quotaOf("q", "configmaps=2"),
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := first.Seed(t.Context(), map1("b")); err != nil { // as if it had stopped before it counted
		t.Fatal(err)
	}
	wantUsed(t, core(first), "q", "configmaps=1/2")
	second := core(localapi.NewTestWith(t, localapi.Options{Storage: store}))
	wantUsed(t, second, "q", "configmaps=2/2")
	if _, err := second.ConfigMaps("default").Create(t.Context(), map1("c"),
		metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("one more: %v", err)
	}
}

// TestQuotaIsNeverExceeded: of many clients that create and delete at once, while somebody writes a wrong status, none
// ever makes more objects than the quota allows.
func TestQuotaIsNeverExceeded(t *testing.T) {
	const hard, clients, rounds = 5, 16, 40
	s := localapi.NewTest(t, quotaOf("q", fmt.Sprint("configmaps=", hard)))
	c, ctx := core(s), t.Context()
	maps := c.ConfigMaps("default")
	var created atomic.Int64
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() {
			for round := range rounds {
				name := fmt.Sprint("m", i, "-", round)
				_, err := maps.Create(ctx, map1(name), metav1.CreateOptions{})
				switch {
				case apierrors.IsForbidden(err):
					continue
				case err != nil:
					t.Error(err)
				}
				created.Add(1)
				list, err := maps.List(ctx, metav1.ListOptions{})
				if err != nil || len(list.Items) > hard {
					t.Errorf("%d objects, %v", len(list.Items), err)
				}
				if err := maps.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Go(func() {
		for range rounds {
			_, err := c.ResourceQuotas("default").Patch(ctx, "q", types.MergePatchType,
				[]byte(`{"status":{"used":{"configmaps":"0"}}}`), metav1.PatchOptions{}, "status")
			if err != nil {
				t.Error(err)
			}
		}
	})
	all.Wait()
	wantUsed(t, c, "q", fmt.Sprint("configmaps=0/", hard))
	if created.Load() < hard {
		t.Errorf("%d were created", created.Load())
	}
}

// TestQuotaQuantities: every kind of object uses up what it does in a cluster, also through the requests that change
// it. peers/localapi compares the words and the charges with kube-apiserver.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/quota/v1/evaluator/core.
func TestQuotaQuantities(t *testing.T) {
	s, config := start(t, localapi.Options{})
	send := func(code int, method, path, body string) {
		t.Helper()
		r := request{method: method, path: "/api/v1/namespaces/default/" + path, contentType: yamlBody, body: body}
		if r.method == "PATCH" {
			r.contentType = mergePatch
		}
		if strings.HasPrefix(path, "/") {
			r.path = path
		}
		wantCode(t, config, code, r)
	}
	c := kubernetes.NewForConfigOrDie(s.RESTConfig()).CoreV1()
	post := func(path, body string) { t.Helper(); send(201, "POST", path, body) }
	quota := func(name, spec string) {
		t.Helper()
		post("resourcequotas", "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: "+name+"}\nspec: "+spec)
	}
	pod := func(name, rest string) string {
		return "apiVersion: v1\nkind: Pod\nmetadata: {name: " + name + "}\nspec: " + rest
	}

	quota("pods", `{hard: {pods: 9, count/pods: 9, requests.cpu: 9, cpu: 9, limits.cpu: 9, memory: 9Gi,
  requests.hugepages-2Mi: 9Gi, requests.example.com/gpu: 9, example.com/gpu: 9, count/pods.example.com: 9}}`)
	send(403, "POST", "pods", pod("p", "{containers: [{name: c, image: i}]}"))
	post("pods", pod("p", `
  containers: [{name: c, image: i, resources: {requests: {cpu: 1, memory: 1Gi, example.com/gpu: 2},
    limits: {cpu: 2, memory: 1Gi, example.com/gpu: 2}}}]
  initContainers: [{name: d, image: i, resources: {requests: {cpu: 3, memory: 1Mi}, limits: {cpu: 4}}}]`))
	wantUsed(t, c, "pods", "pods=1/9", "count/pods=1/9", "requests.cpu=3/9", "cpu=3/9", "limits.cpu=4/9",
		"memory=1Gi/9Gi",
		"requests.hugepages-2Mi=0/9Gi", "requests.example.com/gpu=2/9")
	send(200, "PATCH", "pods/p/status", `{"status":{"phase":"Succeeded"}}`)
	wantUsed(t, c, "pods", "pods=0/9", "count/pods=1/9", "requests.cpu=0/9", "limits.cpu=0/9", "memory=0/9Gi")
	send(200, "DELETE", "pods/p?gracePeriodSeconds=0", "")
	wantUsed(t, c, "pods", "count/pods=0/9")
	send(200, "DELETE", "resourcequotas/pods", "")

	quota("services", `{hard: {services: 9, services.nodeports: 4, services.loadbalancers: 1}}`)
	service := func(name, spec string) string { // besides that of the API
		return "apiVersion: v1\nkind: Service\nmetadata: {name: " + name + "}\nspec: " + spec
	}
	post("services", service("a", "{ports: [{port: 1}]}"))
	post("services", service("b", "{type: NodePort, ports: [{port: 1, name: p}, {port: 2, name: q}]}"))
	post("services", service("c", "{type: LoadBalancer, allocateLoadBalancerNodePorts: false, ports: [{port: 1}]}"))
	wantUsed(t, c, "services", "services=4/9", "services.nodeports=2/4", "services.loadbalancers=1/1")
	send(403, "PATCH", "services/a", `{"spec":{"type":"LoadBalancer"}}`)
	send(200, "PATCH", "services/a", `{"spec":{"type":"NodePort"}}`)
	wantUsed(t, c, "services", "services=4/9", "services.nodeports=3/4", "services.loadbalancers=1/1")
	send(200, "PATCH", "services/b", `{"spec":{"type":"ClusterIP"}}`)
	wantUsed(t, c, "services", "services=4/9", "services.nodeports=1/4")
	send(200, "DELETE", "services/c", "")
	wantUsed(t, c, "services", "services=3/9", "services.loadbalancers=0/1")

	quota("claims", `{hard: {persistentvolumeclaims: 9, requests.storage: 9Gi,
  gold.storageclass.storage.k8s.io/requests.storage: 2Gi, gold.storageclass.storage.k8s.io/persistentvolumeclaims: 5,
  iron.storageclass.storage.k8s.io/persistentvolumeclaims: 0}}`)
	claim := func(name, class, size string) string {
		return "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: " + name +
			"}\nspec: {storageClassName: " + class +
			", accessModes: [ReadWriteOnce], resources: {requests: {storage: " + size + "}}}"
	}
	post("persistentvolumeclaims", claim("a", "gold", "1Gi"))
	post("persistentvolumeclaims", claim("b", "tin", "3Gi"))
	send(403, "POST", "persistentvolumeclaims", claim("c", "gold", "2Gi"))
	send(403, "POST", "persistentvolumeclaims", claim("c", "iron", "1Mi"))
	wantUsed(t, c, "claims", "persistentvolumeclaims=2/9", "requests.storage=4Gi/9Gi",
		"gold.storageclass.storage.k8s.io/requests.storage=1Gi/2Gi",
		"gold.storageclass.storage.k8s.io/persistentvolumeclaims=1/5",
		"iron.storageclass.storage.k8s.io/persistentvolumeclaims=0/0")

	post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", gadgetsYAML)
	const gadgets = "/apis/example.com/v1/namespaces/default/gadgets"
	gadget := "apiVersion: example.com/v1\nkind: Gadget\nmetadata: {generateName: g-}\nspec: {mode: fast}"
	post(gadgets, gadget)
	quota("counts", `{hard: {count/gadgets.example.com: 2, count/deployments.apps: 1, count/events: 1, count/none: 1}}`)
	post(gadgets, gadget)
	send(403, "POST", gadgets, gadget)
	wantUsed(t, c, "counts", "count/gadgets.example.com=2/2", "count/deployments.apps=0/1")
	q, err := c.ResourceQuotas("default").Get(t.Context(), "counts", metav1.GetOptions{})
	if err != nil || len(q.Status.Used) != 2 || len(q.Status.Hard) != 4 {
		t.Errorf("what is not counted: %v, %v", q, err)
	}
	send(200, "DELETE", gadgets, "")
	wantUsed(t, c, "counts", "count/gadgets.example.com=0/2")
}

// TestQuotaScopes: a quota with scopes is about some pods only, also when a pod moves from one to another.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/quota/v1/evaluator/core/pods.go podMatchesScopeFunc.
func TestQuotaScopes(t *testing.T) {
	s := localapi.NewTest(t)
	c, ctx := core(s), t.Context()
	scopes := map[string]corev1.ResourceQuotaSpec{
		"terminating": {Scopes: []corev1.ResourceQuotaScope{"Terminating"}},
		"running":     {Scopes: []corev1.ResourceQuotaScope{"NotTerminating"}},
		"best":        {Scopes: []corev1.ResourceQuotaScope{"BestEffort"}},
		"better":      {Scopes: []corev1.ResourceQuotaScope{"NotBestEffort", "NotTerminating"}},
		"cross":       {Scopes: []corev1.ResourceQuotaScope{"CrossNamespacePodAffinity"}},
	}
	for name, op := range map[string]corev1.ScopeSelectorOperator{
		"high": corev1.ScopeSelectorOpIn, "other": corev1.ScopeSelectorOpNotIn,
		"any": corev1.ScopeSelectorOpExists, "none": corev1.ScopeSelectorOpDoesNotExist,
	} {
		r := corev1.ScopedResourceSelectorRequirement{ScopeName: "PriorityClass", Operator: op}
		if op == corev1.ScopeSelectorOpIn || op == corev1.ScopeSelectorOpNotIn {
			r.Values = []string{"system-node-critical"}
		}
		scopes[name] = corev1.ResourceQuotaSpec{ScopeSelector: &corev1.ScopeSelector{
			MatchExpressions: []corev1.ScopedResourceSelectorRequirement{r},
		}}
	}
	for name, spec := range scopes {
		q := quotaOf(name)
		q.Spec = spec
		q.Spec.Hard = corev1.ResourceList{"pods": resource.MustParse("2")}
		if _, err := c.ResourceQuotas("default").Create(ctx, q, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	create := func(name string, change func(*corev1.PodSpec)) {
		t.Helper()
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}
		pod.Spec.Containers = []corev1.Container{{Name: "c", Image: "i"}}
		change(&pod.Spec)
		if _, err := c.Pods("default").Create(ctx, pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	create("plain", func(*corev1.PodSpec) {})
	create("high", func(spec *corev1.PodSpec) {
		spec.PriorityClassName = "system-node-critical"
		spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("1")}
	})
	create("cross", func(spec *corev1.PodSpec) {
		deadline := int64(60)
		spec.ActiveDeadlineSeconds = &deadline
		spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{
				Weight: 1, PodAffinityTerm: corev1.PodAffinityTerm{TopologyKey: "a", Namespaces: []string{"b"}},
			}},
		}}
	})
	want := func(used map[string]int) {
		t.Helper()
		for name, n := range used {
			wantUsed(t, c, name, fmt.Sprintf("pods=%d/2", n))
		}
	}
	want(map[string]int{
		"terminating": 1, "running": 2, "best": 2, "better": 1, "cross": 1, "high": 1, "other": 2, "any": 1, "none": 2,
	})
	deadline := []byte(`{"spec":{"activeDeadlineSeconds":9}}`)
	_, err := c.Pods("default").Patch(ctx, "plain", types.MergePatchType, deadline, metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want(map[string]int{"terminating": 2, "running": 1, "best": 2})
	_, err = c.Pods("default").Patch(ctx, "high", types.MergePatchType, deadline, metav1.PatchOptions{})
	if !apierrors.IsForbidden(err) {
		t.Errorf("a third pod that is terminating: %v", err)
	}
	want(map[string]int{"terminating": 2, "running": 1, "better": 1})
}
