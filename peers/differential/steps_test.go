package differential

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// resources are the REST resources of the kinds that scenarios write.
var resources = map[string]schema.GroupVersionResource{
	"Deployment":    {Group: "apps", Version: "v1", Resource: "deployments"},
	"ReplicaSet":    {Group: "apps", Version: "v1", Resource: "replicasets"},
	"Pod":           {Version: "v1", Resource: "pods"},
	"Service":       {Version: "v1", Resource: "services"},
	"Endpoints":     {Version: "v1", Resource: "endpoints"},
	"ConfigMap":     {Version: "v1", Resource: "configmaps"},
	"ResourceQuota": {Version: "v1", Resource: "resourcequotas"},
}

// act is a step that is taken once.
func act(what string, f func(ctx context.Context, e *env) error) step {
	return func(ctx context.Context, e *env) (string, bool, error) { return what, false, f(ctx, e) }
}

// create creates objects.
func create(objects ...runtime.Object) step {
	var what []string
	for _, o := range objects {
		what = append(what, fmt.Sprintf("%s %s", kindOf(o), o.(metav1.Object).GetName()))
	}
	return act("create "+strings.Join(what, ", "), func(ctx context.Context, e *env) error {
		for _, o := range objects {
			fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
			if err != nil {
				return err
			}
			delete(fields, "status")
			u := &unstructured.Unstructured{Object: fields}
			resource := resources[kindOf(o)]
			u.SetKind(kindOf(o))
			u.SetAPIVersion(resource.GroupVersion().String())
			if _, err := e.side.rec.client.Resource(resource).Namespace(e.ns).Create(ctx, u,
				metav1.CreateOptions{}); err != nil {
				return err
			}
		}
		return nil
	})
}

func kindOf(o runtime.Object) string {
	name := fmt.Sprintf("%T", o)
	return name[strings.LastIndex(name, ".")+1:]
}

// patch merges a JSON document into an object, strategically.
func patch(kind, name, document string) step {
	return act(fmt.Sprintf("patch %s %s %s", kind, name, document), func(ctx context.Context, e *env) error {
		return e.patch(ctx, kind, name, document)
	})
}

func (e *env) patch(ctx context.Context, kind, name, document string) error {
	_, err := e.side.rec.client.Resource(resources[kind]).Namespace(e.ns).Patch(ctx, name,
		types.StrategicMergePatchType, []byte(document), metav1.PatchOptions{})
	return err
}

func scale(name string, n int) step {
	return patch("Deployment", name, fmt.Sprintf(`{"spec":{"replicas":%d}}`, n))
}

func image(name, tag string) step {
	return patch("Deployment", name,
		fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"image:%s"}]}}}}`, tag))
}

func pause(name string, on bool) step {
	return patch("Deployment", name, fmt.Sprintf(`{"spec":{"paused":%t}}`, on))
}

func annotate(kind, name, key, value string) step {
	return patch(kind, name, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, key, value))
}

// remove deletes an object, with a propagation policy if one is given.
func remove(kind, name string, policy ...metav1.DeletionPropagation) step {
	what := fmt.Sprintf("delete %s %s", kind, name)
	o := metav1.DeleteOptions{}
	if len(policy) > 0 {
		what += fmt.Sprintf(" (%s)", policy[0])
		o.PropagationPolicy = &policy[0]
	}
	return act(what, func(ctx context.Context, e *env) error {
		return e.side.rec.client.Resource(resources[kind]).Namespace(e.ns).Delete(ctx, name, o)
	})
}

// pods lets the kubelet do up to n tasks, one a round; fewer when there is nothing left to do. Negative: until
// nothing is left.
func pods(n int) step {
	return func(ctx context.Context, e *env) (string, bool, error) {
		tasks := e.tasks()
		if len(tasks) == 0 || e.runs == n {
			return "", false, nil
		}
		t := tasks[e.rng.IntN(len(tasks))]
		return fmt.Sprintf("kubelet: %s a pod %s", t.does, t.set), true, e.do(ctx, t, 1)
	}
}

// podsAtOnce lets the kubelet do everything there is to do, all pods at once, until nothing is left.
func podsAtOnce() step {
	return func(ctx context.Context, e *env) (string, bool, error) {
		tasks := e.tasks()
		if len(tasks) == 0 {
			return "", false, nil
		}
		var what []string
		for _, t := range tasks {
			what = append(what, fmt.Sprintf("%s %d×%s", t.does, len(t.pods), t.set))
			if err := e.do(ctx, t, len(t.pods)); err != nil {
				return "", false, err
			}
		}
		return "kubelet: " + strings.Join(what, ", "), true, nil
	}
}

// says waits for a condition of a Deployment.
func says(name, kind, reason string) func(e *env) (missing string) {
	return func(e *env) string {
		if d := e.side.rec.find(e.ns, "Deployment", name); d == nil || !hasCondition(d, kind, reason) {
			return "it does not say so"
		}
		return ""
	}
}

func hasCondition(o *unstructured.Unstructured, kind, reason string) bool {
	all, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	return slices.ContainsFunc(all, func(c any) bool {
		m := c.(map[string]any)
		return m["type"] == kind && m["reason"] == reason
	})
}

// toPod does something to the first pod that pick takes. Pods among which it could be another must be alike.
func toPod(what string, pick func(pod *unstructured.Unstructured) bool,
	f func(ctx context.Context, e *env, pod *unstructured.Unstructured) error,
) step {
	return act(what, func(ctx context.Context, e *env) error {
		for _, pod := range e.podsByAge() {
			if pick(pod) {
				return f(ctx, e, pod)
			}
		}
		return fmt.Errorf("there is no such pod")
	})
}

func readyPod(pod *unstructured.Unstructured) bool {
	return isReady(pod) && pod.GetDeletionTimestamp() == nil
}

func becomes(ready bool) func(context.Context, *env, *unstructured.Unstructured) error {
	return func(ctx context.Context, e *env, pod *unstructured.Unstructured) error {
		return setReady(ctx, e.side.client, pod, ready)
	}
}

func ended(phase corev1.PodPhase) func(context.Context, *env, *unstructured.Unstructured) error {
	return func(ctx context.Context, e *env, pod *unstructured.Unstructured) error {
		return setPhase(ctx, e.side.client, pod, phase)
	}
}

func deleted(ctx context.Context, e *env, pod *unstructured.Unstructured) error {
	return e.side.client.CoreV1().Pods(e.ns).Delete(ctx, pod.GetName(), metav1.DeleteOptions{})
}

func patched(document string) func(context.Context, *env, *unstructured.Unstructured) error {
	return func(ctx context.Context, e *env, pod *unstructured.Unstructured) error {
		return e.patch(ctx, "Pod", pod.GetName(), document)
	}
}

// second lets time pass, so that what comes next is younger by the clock of the objects, which counts seconds.
func second() step {
	return func(ctx context.Context, _ *env) (string, bool, error) {
		select {
		case <-time.After(1100 * time.Millisecond):
		case <-ctx.Done():
		}
		return "", false, nil
	}
}

// until takes a step and then waits, without noting what is there in between: for what goes on by itself as time
// passes.
func until(first step, what string, ask func(e *env) (missing string)) step {
	return func(ctx context.Context, e *env) (string, bool, error) {
		if e.runs == 0 {
			var err error
			e.doing, _, err = first(ctx, e)
			return "", true, err
		}
		if ask(e) != "" {
			return "", true, nil
		}
		return e.doing + ", until " + what, false, nil
	}
}

// podsPatiently is pods(-1) for Deployments with minReadySeconds: after each task it waits until what is ready is
// available.
func podsPatiently() step {
	return func(ctx context.Context, e *env) (string, bool, error) {
		if e.doing != "" {
			if allAvailable(e) != "" {
				return "", true, nil
			}
			said := e.doing
			e.doing = ""
			return said + ", until what is ready is available", true, nil
		}
		tasks := e.tasks()
		if len(tasks) == 0 {
			return "", false, nil
		}
		t := tasks[e.rng.IntN(len(tasks))]
		e.doing = fmt.Sprintf("kubelet: %s a pod %s", t.does, t.set)
		return "", true, e.do(ctx, t, 1)
	}
}

// allAvailable asks whether all pods that are ready are available.
func allAvailable(e *env) (missing string) {
	for _, rs := range e.side.rec.list(e.ns, "ReplicaSet") {
		ready, _, _ := unstructured.NestedInt64(rs.Object, "status", "readyReplicas")
		available, _, _ := unstructured.NestedInt64(rs.Object, "status", "availableReplicas")
		if ready != available {
			return rs.GetName() + " has pods that are ready and not available"
		}
	}
	return ""
}

// isNumber asks for a number in an object.
func isNumber(kind, name string, want int64, path ...string) func(e *env) (missing string) {
	return func(e *env) string {
		o := e.side.rec.find(e.ns, kind, name)
		if o == nil {
			return "it is not there"
		}
		if got, _, _ := unstructured.NestedInt64(o.Object, path...); got != want {
			return fmt.Sprintf("it is %d", got)
		}
		return ""
	}
}

// web is the Deployment of most scenarios, changed by the given functions.
func web(replicas int32, change ...func(*appsv1.DeploymentSpec)) *appsv1.Deployment {
	d := deployment("web", replicas)
	for _, f := range change {
		f(&d.Spec)
	}
	return d
}

func mustJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}
