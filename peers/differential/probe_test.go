package differential

import (
	"context"
	"fmt"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// probeNamespace holds the probe's objects, which no scenario sees.
const probeNamespace = "probe"

// probe sends a change through all controllers: a Deployment between no pod and one, behind a Service, and an object
// whose owner does not exist.
type probe struct {
	client kubernetes.Interface
	rec    *recorder
	passes int
}

// pass changes the size of the Deployment and waits until all of its consequences are there.
func (p *probe) pass(ctx context.Context) error {
	if p.passes == 0 {
		if err := p.prepare(ctx); err != nil {
			return fmt.Errorf("prepare the probe: %w", err)
		}
	}
	p.passes++
	if err := p.orphan(ctx); err != nil {
		return fmt.Errorf("probe: %w", err)
	}
	size := p.passes % 2
	patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, size)
	if _, err := p.client.AppsV1().Deployments(probeNamespace).Patch(ctx, probeNamespace, types.MergePatchType, patch,
		metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("scale the probe: %w", err)
	}
	acted := map[string]bool{}
	return p.rec.until(ctx, func() string {
		for _, pod := range p.rec.list(probeNamespace, "Pod") {
			if err := p.act(ctx, pod, acted); err != nil {
				return fmt.Sprintf("the probe's pod: %v", err)
			}
		}
		return p.missing(int64(size))
	})
}

func (p *probe) prepare(ctx context.Context) error {
	if _, err := p.client.CoreV1().Namespaces().Create(ctx, namespace(probeNamespace),
		metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	d := deployment(probeNamespace, 0)
	if _, err := p.client.AppsV1().Deployments(probeNamespace).Create(ctx, d, metav1.CreateOptions{}); err != nil {
		return err
	}
	_, err := p.client.CoreV1().Services(probeNamespace).Create(ctx, service(probeNamespace), metav1.CreateOptions{})
	return err
}

// orphan creates what the garbage collector has to delete.
func (p *probe) orphan(ctx context.Context) error {
	_, err := p.client.CoreV1().ConfigMaps(probeNamespace).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: "orphan-" + strconv.Itoa(p.passes),
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "v1", Kind: "ConfigMap", Name: "nobody", UID: types.UID("nobody-" + strconv.Itoa(p.passes)),
		}},
	}}, metav1.CreateOptions{})
	return err
}

// act is the kubelet for the probe's pods, once for each state.
func (p *probe) act(ctx context.Context, pod *unstructured.Unstructured, acted map[string]bool) error {
	doing := "start "
	if pod.GetDeletionTimestamp() != nil {
		doing = "finish "
	}
	if acted[doing+pod.GetName()] || doing == "start " && isReady(pod) {
		return nil
	}
	acted[doing+pod.GetName()] = true
	if doing == "start " {
		return startPod(ctx, p.client, pod, "10.250.0.1")
	}
	return finishPod(ctx, p.client, pod)
}

// missing returns what the change has not reached yet.
func (p *probe) missing(size int64) string {
	d := p.rec.find(probeNamespace, "Deployment", probeNamespace)
	if d == nil {
		return "the probe's Deployment is not there"
	}
	if available, _, _ := unstructured.NestedInt64(d.Object, "status", "availableReplicas"); available != size ||
		!observed(d) {
		return fmt.Sprintf("the probe's Deployment has %d pods available, want %d", available, size)
	}
	if terminating, _, _ := unstructured.NestedInt64(d.Object, "status", "terminatingReplicas"); terminating != 0 {
		return "the probe's pod is terminating"
	}
	e := p.rec.find(probeNamespace, "Endpoints", probeNamespace)
	if e == nil {
		return "the probe's Endpoints are not there"
	}
	if subsets, _, _ := unstructured.NestedSlice(e.Object, "subsets"); int64(len(subsets)) != size {
		return fmt.Sprintf("the probe's Endpoints have %d subsets, want %d", len(subsets), size)
	}
	if !p.rec.collected("orphan-" + strconv.Itoa(p.passes)) {
		return "the probe's orphan is still there"
	}
	return ""
}

func namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// deployment has one container, and labels by its name.
func deployment(name string, replicas int32) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name: "c", Image: "image:1", Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}},
				}}},
			},
		},
	}
}

// service selects the pods of the Deployment of that name.
func service(name string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": name},
			Ports:    []corev1.ServicePort{{Name: "http", Port: 80}},
		},
	}
}
