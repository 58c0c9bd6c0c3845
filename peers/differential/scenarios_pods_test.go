package differential

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// webSet is a ReplicaSet with the template of web.
func webSet(name string, replicas int32, labels map[string]string) *appsv1.ReplicaSet {
	d := deployment("web", replicas)
	d.Spec.Template.Labels = labels
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: d.Spec.Template,
		},
	}
}

// barePod is a pod without an owner, with a container like that of web.
func barePod(name string, labels map[string]string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec:       deployment("web", 0).Spec.Template.Spec,
	}
}

// release takes the finalizer from all pods.
func release() step {
	return act("take the finalizer from all pods", func(ctx context.Context, e *env) error {
		for _, pod := range e.podsByAge() {
			if !slices.Contains(pod.GetFinalizers(), held) {
				continue
			}
			patch := fmt.Sprintf(`{"metadata":{"$deleteFromPrimitiveList/finalizers":[%q]}}`, held)
			if err := e.patch(ctx, "Pod", pod.GetName(), patch); err != nil {
				return err
			}
		}
		return nil
	})
}

func costless(pod *unstructured.Unstructured) bool { return len(pod.GetAnnotations()) == 0 }

// podScenarios are about ReplicaSets and their pods.
func podScenarios() []scenario {
	app := map[string]string{"app": "web"}
	relabel := func(value string) string { return fmt.Sprintf(`{"metadata":{"labels":{"app":%q}}}`, value) }
	named := func(name string) func(*unstructured.Unstructured) bool {
		return func(pod *unstructured.Unstructured) bool { return pod.GetName() == name }
	}
	return []scenario{
		{
			name: "set",
			steps: []step{
				create(webSet("set", 3, app)), pods(all),
				patch("ReplicaSet", "set", `{"spec":{"replicas":1}}`), pods(all), remove("ReplicaSet", "set"),
				pods(all),
			},
		},
		{name: "set-adopts-pods", steps: []step{
			create(barePod("a", app), barePod("b", app), barePod("c", app)), pods(all),
			toPod("c is not ready", named("c"), becomes(false)),
			create(webSet("set", 2, app)), pods(all),
		}},
		{
			name: "set-orphans-pods",
			steps: []step{
				create(webSet("set", 2, app)), pods(all),
				remove("ReplicaSet", "set", metav1.DeletePropagationOrphan), second(), create(webSet("heir", 3, app)),
				pods(all),
			},
		},
		{
			name: "set-min-ready",
			steps: []step{
				create(
					func() *appsv1.ReplicaSet { s := webSet("set", 2, app); s.Spec.MinReadySeconds = 2; return s }(),
				), podsPatiently(),
			},
		},
		{
			name: "pod-failed",
			steps: running(web(3), toPod("a pod fails", readyPod, ended("Failed")), pods(all),
				toPod("a pod succeeds", readyPod, ended("Succeeded")), pods(all)),
		},
		{
			name: "pod-flaps",
			steps: running(web(3), toPod("a pod is not ready", readyPod, becomes(false)),
				toPod("it is ready again", notReady, becomes(true))),
		},
		{
			name: "pods-all-unready",
			steps: running(web(2), toPod("a pod is not ready", readyPod, becomes(false)),
				toPod("the other too", readyPod, becomes(false)),
				toPod("one is back", notReady, becomes(true)), toPod("and the other", notReady, becomes(true))),
		},
		{name: "pod-deleted", steps: running(web(3), toPod("delete a pod", readyPod, deleted), pods(all))},
		{
			name: "pod-relabelled",
			steps: running(web(2), toPod("a pod gets another label", readyPod, patched(relabel("other"))), pods(1),
				toPod("it gets its label back",
					func(pod *unstructured.Unstructured) bool { return pod.GetLabels()["app"] == "other" },
					patched(relabel("web"))), pods(all)),
		},
		{
			name: "pods-terminating",
			steps: running(web(3, holding), toPod("delete a pod", readyPod, deleted), pods(all), image("web", "2"),
				pods(all), release(), pods(all)),
		},
		{name: "quota-of-pods", retried: true, steps: []step{
			quota("pods", "2"),
			until(create(web(4)), "the Deployment says so", says("web", "ReplicaFailure", "FailedCreate")), pods(all),
			until(both(remove("ResourceQuota", "quota"), annotate("ReplicaSet", webHash1, "look", "again")),
				"all pods are there", isNumber("Deployment", "web", 4, "status", "replicas")), pods(all),
		}},
		{name: "quota-of-sets", retried: true, steps: []step{
			quota("count/replicasets.apps", "0"),
			until(create(web(2)), "the Deployment says so", says("web", "Progressing", "ReplicaSetCreateError")),
			until(both(remove("ResourceQuota", "quota"), annotate("Deployment", "web", "look", "again")),
				"all pods are there", isNumber("Deployment", "web", 2, "status", "replicas")), pods(all),
		}},
		{name: "namespace-deleted", retried: true, steps: running(web(2), deleteNamespace())},
	}
}

func notReady(pod *unstructured.Unstructured) bool {
	return !isReady(pod) && pod.GetDeletionTimestamp() == nil
}

// both takes two steps as one.
func both(first, second step) step {
	return func(ctx context.Context, e *env) (string, bool, error) {
		one, _, err := first(ctx, e)
		if err != nil {
			return "", false, err
		}
		two, _, err := second(ctx, e)
		return one + " and " + two, false, err
	}
}

// quota allows so much of something, and is in force at once: no controller has to look at it.
func quota(what, most string) step {
	return act(fmt.Sprintf("create a quota of %s %s", most, what), func(ctx context.Context, e *env) error {
		hard := corev1.ResourceList{corev1.ResourceName(what): resource.MustParse(most)}
		quotas := e.side.client.CoreV1().ResourceQuotas(e.ns)
		q, err := quotas.Create(ctx, &corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Name: "quota"}, Spec: corev1.ResourceQuotaSpec{Hard: hard},
		}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		patch := mustJSON(
			map[string]any{
				"status": corev1.ResourceQuotaStatus{
					Hard: hard,
					Used: corev1.ResourceList{corev1.ResourceName(what): resource.MustParse("0")},
				},
			},
		)
		_, err = quotas.Patch(ctx, q.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
		return err
	})
}

// deleteNamespace deletes the namespace and lets the kubelet work until it holds nothing.
func deleteNamespace() step {
	return func(ctx context.Context, e *env) (string, bool, error) {
		if e.runs == 0 {
			return "", true, e.side.client.CoreV1().Namespaces().Delete(ctx, e.ns, metav1.DeleteOptions{})
		}
		for _, t := range e.tasks() {
			if err := e.do(ctx, t, len(t.pods)); err != nil {
				return "", false, err
			}
		}
		if len(e.settled()) > 0 {
			return "", true, nil
		}
		return "delete the namespace, until nothing is left in it", false, nil
	}
}
