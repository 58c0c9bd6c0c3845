package localapi_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/flyball-dev/flyball/localapi"
)

// fieldsOf are the fields that a manager owns through a subresource, as JSON.
func fieldsOf(t *testing.T, body, manager, subresource string) string {
	t.Helper()
	var obj struct{ Metadata metav1.ObjectMeta }
	if err := json.Unmarshal([]byte(body), &obj); err != nil {
		t.Fatal(err)
	}
	for _, e := range obj.Metadata.ManagedFields {
		if e.Manager == manager && e.Subresource == subresource {
			return e.FieldsV1.GetRawString()
		}
	}
	return ""
}

// TestManagersOfSubresources: what a write to a subresource resets is not the writer's; a scale's replicas are the
// field they stand for; a binding is nobody's.
//
// Source: compared with kube-apiserver v1.37.2.
func TestManagersOfSubresources(t *testing.T) {
	_, config := start(t, localapi.Options{})
	const deployments, pods = "/apis/apps/v1/namespaces/default/deployments", "/api/v1/namespaces/default/pods"
	send := func(method, path, contentType, body string) string {
		t.Helper()
		code, answered := answer(t, config, request{method: method, path: path, contentType: contentType, body: body})
		if code >= 300 {
			t.Fatalf("%s %s: %d %s", method, path, code, answered)
		}
		return answered
	}
	const merge, strategic = "application/merge-patch+json", "application/strategic-merge-patch+json"
	send("POST", deployments+"?fieldManager=maker", "application/json", `{"metadata":{"name":"d"},"spec":{"replicas":1,
		"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}`)
	d := send("PATCH", deployments+"/d/status?fieldManager=st", merge,
		`{"metadata":{"labels":{"x":"y"},"annotations":{"q":"r"}},"spec":{"replicas":7},"status":{"replicas":2}}`)
	if got, want := fieldsOf(t, d, "st", "status"),
		`{"f:metadata":{"f:annotations":{".":{},"f:q":{}}},"f:status":{"f:replicas":{}}}`; got != want {
		t.Errorf("a status write owns\n%s, want\n%s", got, want)
	}
	send("PATCH", deployments+"/d/scale?fieldManager=scaler", merge, `{"spec":{"replicas":3}}`)
	d = send("GET", deployments+"/d", "", "")
	if got, want := fieldsOf(t, d, "scaler", "scale"), `{"f:spec":{"f:replicas":{}}}`; got != want {
		t.Errorf("a scale owns\n%s, want\n%s", got, want)
	}
	if strings.Contains(fieldsOf(t, d, "maker", ""), "f:replicas") {
		t.Error("who made it still owns the replicas")
	}

	send("POST", pods+"?fieldManager=maker", "application/json",
		`{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}}`)
	send("POST", pods+"/p/binding?fieldManager=scheduler", "application/json",
		`{"metadata":{"name":"p"},"target":{"kind":"Node","name":"n"}}`)
	p := send("PATCH", pods+"/p/ephemeralcontainers?fieldManager=debug", strategic,
		`{"metadata":{"labels":{"l":"m"}},"spec":{"ephemeralContainers":[{"name":"e","image":"i"}]}}`)
	if got := fieldsOf(t, p, "scheduler", "binding"); got != "" {
		t.Errorf("a binding owns %s", got)
	}
	if got := fieldsOf(t, p, "debug", "ephemeralcontainers"); !strings.Contains(got, `"f:l"`) ||
		!strings.Contains(got, `"f:imagePullPolicy"`) {
		t.Errorf("a debug container owns %s, want also what was tried and what was defaulted", got)
	}
}

// TestEvictionAsksTheBudget: a budget grants as many evictions as its status allows, notes for which pods, and no dry
// run counts.
//
// Source: compared with kube-apiserver v1.37.2.
func TestEvictionAsksTheBudget(t *testing.T) {
	running := func(name string) *corev1.Pod {
		p := newPod(name, "node")
		p.Labels = map[string]string{"app": "web"}
		p.Status = corev1.PodStatus{
			Phase:      corev1.PodRunning,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		}
		return p
	}
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"},
		Spec: policyv1.PodDisruptionBudgetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
		},
	}
	client := kubernetes.NewForConfigOrDie(localapi.NewTest(t, running("a"), running("b"), budget).RESTConfig())
	budgets := client.PolicyV1().PodDisruptionBudgets("default")
	evict := func(name string, dryRun ...string) error {
		return client.CoreV1().Pods("default").EvictV1(t.Context(), &policyv1.Eviction{
			ObjectMeta:    metav1.ObjectMeta{Name: name, Namespace: "default"},
			DeleteOptions: &metav1.DeleteOptions{DryRun: dryRun},
		})
	}
	if err := evict("a"); !apierrors.IsTooManyRequests(err) ||
		!apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause) {
		t.Errorf("a budget that nobody has looked at grants an eviction: %v", err)
	}
	b, err := budgets.Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	b.Status = policyv1.PodDisruptionBudgetStatus{
		ObservedGeneration: 1, DisruptionsAllowed: 1, CurrentHealthy: 2,
		DesiredHealthy: 1,
	}
	if _, err := budgets.UpdateStatus(t.Context(), b, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(evict("a", metav1.DryRunAll), evict("a")); err != nil {
		t.Errorf("an eviction that is allowed: %v", err)
	}
	if err := evict("b"); !apierrors.IsTooManyRequests(err) {
		t.Errorf("one eviction more than is allowed: %v", err)
	}
	b, err = budgets.Get(t.Context(), "web", metav1.GetOptions{})
	if _, noted := b.Status.DisruptedPods["a"]; err != nil || b.Status.DisruptionsAllowed != 0 || !noted {
		t.Errorf("the budget's status: %+v, %v", b.Status, err)
	}
}

// TestKubernetesService: every server has the Service of the API, unless told not to; it is found again in storage
// that has it.
func TestKubernetesService(t *testing.T) {
	_, config := start(t, localapi.Options{})
	client := clientset(t, config)
	service, err := client.CoreV1().Services("default").Get(t.Context(), "kubernetes", metav1.GetOptions{})
	if err != nil || service.Spec.ClusterIP != "10.96.0.1" || service.Spec.Type != corev1.ServiceTypeClusterIP {
		t.Errorf("service: %+v, %v", service, err)
	}
	slices, err := client.DiscoveryV1().EndpointSlices("default").List(t.Context(),
		metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=kubernetes"})
	if err != nil || len(slices.Items) != 1 || len(slices.Items[0].Endpoints) != 1 {
		t.Errorf("slices: %+v, %v", slices, err)
	}
	_, config = start(t, localapi.Options{NoKubernetesService: true})
	for _, path := range []string{"services/kubernetes", "endpoints/kubernetes"} {
		if code, body := answer(t, config, request{path: "/api/v1/namespaces/default/" + path}); code != 404 {
			t.Errorf("%s, which is not wanted: %d %s", path, code, body)
		}
	}
}

// TestRowsOfFinishedPods: a printed pod that is over says so, so that kubectl can dim it.
func TestRowsOfFinishedPods(t *testing.T) {
	over := newPod("over", "")
	over.Status.Phase = corev1.PodSucceeded
	server := localapi.NewTest(t, over, newPod("new", ""))
	_, body := answer(t, server.RESTConfig(),
		request{path: "/api/v1/namespaces/default/pods", accept: "application/json;as=Table;v=v1;g=meta.k8s.io"})
	var table metav1.Table
	if err := json.Unmarshal([]byte(body), &table); err != nil || len(table.Rows) != 2 {
		t.Fatal(err, body)
	}
	if got := table.Rows[1].Conditions; len(got) != 1 || got[0].Type != metav1.RowCompleted ||
		got[0].Reason != "Succeeded" || table.Rows[0].Conditions != nil {
		t.Errorf("conditions: %v and %v", table.Rows[0].Conditions, got)
	}
}
