//lint:file-ignore SA1019 Endpoints are deprecated, but one of the controllers under test handles them.

package node

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

const replicas = 3

// web is a Deployment of the test's web server, with a Service at a port of the node.
type web struct {
	n    *Node
	name string // of the Deployment and of the Service
	url  string // of the Service
}

// newWeb creates the Deployment, and waits until it is rolled out and its Service answers.
func newWeb(t *testing.T, n *Node, name string) *web {
	t.Helper()
	labels := map[string]string{"app": name}
	port := intstr.FromInt32(8080)
	service, err := n.Client.CoreV1().Services("default").Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeNodePort, Selector: labels,
			Ports: []corev1.ServicePort{{Port: 80, TargetPort: port}},
		},
	}, metav1.CreateOptions{})
	must(t, err)
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name}}
	d.Spec.Replicas, d.Spec.Selector = ptr.To[int32](replicas), &metav1.LabelSelector{MatchLabels: labels}
	d.Spec.Template.Labels = labels
	d.Spec.Template.Spec = corev1.PodSpec{
		TerminationGracePeriodSeconds: ptr.To[int64](20),
		Containers: []corev1.Container{{
			Name: "web", Image: Web[0], Ports: []corev1.ContainerPort{{ContainerPort: port.IntVal}},
			ReadinessProbe: &corev1.Probe{
				PeriodSeconds: 1,
				ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/ready", Port: port}},
			},
			// A pod that ends must serve until kube-proxy has heard of it.
			Lifecycle: &corev1.Lifecycle{
				PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 5}},
			},
		}},
	}
	_, err = n.Client.AppsV1().Deployments("default").Create(t.Context(), d, metav1.CreateOptions{})
	must(t, err)
	must(t, n.AwaitDeployment(t.Context(), "default", name))
	w := &web{n: n, name: name, url: fmt.Sprintf("http://%s:%d/", n.IP, service.Spec.Ports[0].NodePort)}
	w.awaitEndpoints(t, replicas)
	must(t, eventually(t.Context(), "the Service does not answer", func() error {
		response, err := http.Get(w.url) // kube-proxy has heard of it when it does
		if err == nil {
			response.Body.Close()
		}
		return err
	}))
	return w
}

// patch changes the Deployment's container.
func (w *web) patch(t *testing.T, container string) {
	t.Helper()
	_, err := w.n.Client.AppsV1().Deployments("default").Patch(t.Context(), w.name, types.StrategicMergePatchType,
		fmt.Appendf(nil, `{"spec":{"template":{"spec":{"containers":[{"name":"web",%s}]}}}}`, container),
		metav1.PatchOptions{})
	must(t, err)
}

// rolledOut waits for the end of the rollout.
func (w *web) rolledOut(t *testing.T) {
	t.Helper()
	must(t, w.n.AwaitDeployment(t.Context(), "default", w.name))
}

// pods returns the pods that are not being deleted, by name.
func (w *web) pods(t *testing.T) map[string]*corev1.Pod {
	t.Helper()
	list, err := w.n.Client.CoreV1().Pods("default").List(t.Context(),
		metav1.ListOptions{LabelSelector: "app=" + w.name})
	must(t, err)
	pods := map[string]*corev1.Pod{}
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp == nil {
			pods[list.Items[i].Name] = &list.Items[i]
		}
	}
	return pods
}

// switchReadiness tells a pod to be ready or not, through the API server.
func (w *web) switchReadiness(t *testing.T, pod string, ready bool) {
	t.Helper()
	request := w.n.Client.CoreV1().RESTClient().Delete()
	if ready {
		request = w.n.Client.CoreV1().RESTClient().Post()
	}
	must(t, request.Namespace("default").Resource("pods").Name(pod+":8080").SubResource("proxy").Suffix("ready").
		Do(t.Context()).Error())
}

// awaitEndpoints waits until so many pods are ready, and Endpoints and EndpointSlices have their addresses as ready,
// and no other ones.
func (w *web) awaitEndpoints(t *testing.T, want int) {
	t.Helper()
	must(t, eventually(t.Context(), "the endpoints are not those of the ready pods", func() error {
		ready := map[string]bool{}
		for _, pod := range w.pods(t) {
			for _, c := range pod.Status.Conditions {
				if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
					ready[pod.Status.PodIP] = true
				}
			}
		}
		if len(ready) != want {
			return fmt.Errorf("%d pods are ready, want %d", len(ready), want)
		}
		endpoints, err := w.n.Client.CoreV1().Endpoints("default").Get(t.Context(), w.name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		slices, err := w.n.Client.DiscoveryV1().EndpointSlices("default").List(t.Context(),
			metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + w.name})
		if err != nil {
			return err
		}
		return errors.Join(
			same("Endpoints", addresses(endpoints), ready), same("EndpointSlices", sliced(slices.Items), ready))
	}))
}

func addresses(e *corev1.Endpoints) map[string]bool {
	all := map[string]bool{}
	for _, s := range e.Subsets {
		for _, a := range s.Addresses {
			all[a.IP] = true
		}
	}
	return all
}

func sliced(list []discoveryv1.EndpointSlice) map[string]bool {
	all := map[string]bool{}
	for _, s := range list {
		for _, e := range s.Endpoints {
			if ptr.Deref(e.Conditions.Ready, false) {
				all[e.Addresses[0]] = true
			}
		}
	}
	return all
}

func same(what string, have, want map[string]bool) error {
	if maps.Equal(have, want) {
		return nil
	}
	return fmt.Errorf("%s have %v, want %v", what, slices.Sorted(maps.Keys(have)), slices.Sorted(maps.Keys(want)))
}

// versions returns the name and resource version of each of the Deployment's and Service's objects, a line each.
func (w *web) versions(t *testing.T) string {
	t.Helper()
	ctx, labelled := t.Context(), metav1.ListOptions{LabelSelector: "app=" + w.name}
	var all []string
	note := func(kind string, o metav1.Object) {
		all = append(all, fmt.Sprintf("%s %s %s", kind, o.GetName(), o.GetResourceVersion()))
	}
	d, err := w.n.Client.AppsV1().Deployments("default").Get(ctx, w.name, metav1.GetOptions{})
	must(t, err)
	note("Deployment", d)
	sets, err := w.n.Client.AppsV1().ReplicaSets("default").List(ctx, labelled)
	must(t, err)
	for i := range sets.Items {
		note("ReplicaSet", &sets.Items[i])
	}
	for _, pod := range w.pods(t) {
		note("Pod", pod)
	}
	endpoints, err := w.n.Client.CoreV1().Endpoints("default").Get(ctx, w.name, metav1.GetOptions{})
	must(t, err)
	note("Endpoints", endpoints)
	parts, err := w.n.Client.DiscoveryV1().EndpointSlices("default").List(ctx,
		metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + w.name})
	must(t, err)
	for i := range parts.Items {
		note("EndpointSlice", &parts.Items[i])
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// settled returns versions when nothing has changed for two seconds.
func (w *web) settled(t *testing.T) (versions string) {
	t.Helper()
	must(t, eventually(t.Context(), "the objects keep changing", func() error {
		before := w.versions(t)
		<-time.After(2 * time.Second)
		if versions = w.versions(t); versions != before {
			return fmt.Errorf("before:\n%s\nafter:\n%s", before, versions)
		}
		return nil
	}))
	return versions
}

// unmoved fails the test if an object has changed since settled was called.
func (w *web) unmoved(t *testing.T, before string) {
	t.Helper()
	if after := w.versions(t); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

// remove deletes everything and waits until it is gone.
func (w *web) remove(t *testing.T) {
	t.Helper()
	ctx, background := t.Context(), metav1.DeletePropagationBackground
	o := metav1.DeleteOptions{PropagationPolicy: &background}
	must(t, w.n.Client.AppsV1().Deployments("default").Delete(ctx, w.name, o))
	must(t, w.n.Client.CoreV1().Services("default").Delete(ctx, w.name, o))
	must(t, eventually(ctx, "not everything is gone", func() error {
		pods, err := w.n.Client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "app=" + w.name})
		if err != nil {
			return err
		}
		sets, err := w.n.Client.AppsV1().ReplicaSets("default").List(ctx,
			metav1.ListOptions{LabelSelector: "app=" + w.name})
		if err != nil {
			return err
		}
		slices, err := w.n.Client.DiscoveryV1().EndpointSlices("default").List(ctx,
			metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + w.name})
		if err != nil {
			return err
		}
		if n := len(pods.Items) + len(sets.Items) + len(slices.Items); n > 0 {
			return fmt.Errorf("%d pods, %d ReplicaSets and %d EndpointSlices are left", len(pods.Items),
				len(sets.Items), len(slices.Items))
		}
		return nil
	}))
}
