package controllers

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/informer"
)

// Trim removes what no controller reads. Use it as [informer.FactoryOptions].Transform.
//
// It removes the managed fields of every object. The server keeps them if an object is written without them. Of a Pod
// it removes most fields. That is safe because the controllers create, patch and delete Pods but never update one, so
// the server never sees what remains.
//
// Differs: kube-controller-manager keeps all of a Pod but the managed fields.
//
// Source: kube-controller-manager v1.37.2 cmd/kube-controller-manager/app/controllermanager.go, CreateControllerContext
func Trim(obj informer.Object) (informer.Object, error) {
	obj.SetManagedFields(nil)
	if pod, ok := obj.(*corev1.Pod); ok {
		return trimPod(pod), nil
	}
	return obj, nil
}

// trimPod returns a new Pod, so that the old one can be freed. It keeps what decides who owns the Pod, whether and
// where it serves, and in which order the Pods of a ReplicaSet are deleted. A controller that reads more of Pods adds
// it here.
func trimPod(p *corev1.Pod) *corev1.Pod {
	return &corev1.Pod{
		TypeMeta: p.TypeMeta,
		ObjectMeta: metav1.ObjectMeta{
			Name:              p.Name,
			Namespace:         p.Namespace,
			UID:               p.UID,
			ResourceVersion:   p.ResourceVersion,
			CreationTimestamp: p.CreationTimestamp,
			DeletionTimestamp: p.DeletionTimestamp,
			Labels:            p.Labels,
			Annotations:       only(p.Annotations, corev1.PodDeletionCost),
			OwnerReferences:   p.OwnerReferences,
		},
		Spec: corev1.PodSpec{
			NodeName:       p.Spec.NodeName,
			Hostname:       p.Spec.Hostname,
			Subdomain:      p.Spec.Subdomain,
			Containers:     trimContainers(p.Spec.Containers),
			InitContainers: trimContainers(p.Spec.InitContainers),
		},
		Status: corev1.PodStatus{
			Phase:                 p.Status.Phase,
			PodIP:                 p.Status.PodIP,
			PodIPs:                p.Status.PodIPs,
			Conditions:            trimConditions(p.Status.Conditions),
			ContainerStatuses:     trimStatuses(p.Status.ContainerStatuses),
			InitContainerStatuses: trimStatuses(p.Status.InitContainerStatuses),
		},
	}
}

// only returns a map with one key of m, or nil if m does not have it.
func only(m map[string]string, key string) map[string]string {
	if value, ok := m[key]; ok {
		return map[string]string{key: value}
	}
	return nil
}

// trimContainers keeps the ports and the restart policy of containers that have either.
func trimContainers(all []corev1.Container) []corev1.Container {
	var kept []corev1.Container
	for i := range all {
		if c := &all[i]; len(c.Ports) > 0 || c.RestartPolicy != nil {
			kept = append(kept, corev1.Container{Name: c.Name, Ports: c.Ports, RestartPolicy: c.RestartPolicy})
		}
	}
	return kept
}

// trimConditions keeps the status of the Ready condition and when it changed.
func trimConditions(all []corev1.PodCondition) []corev1.PodCondition {
	for i := range all {
		if c := &all[i]; c.Type == corev1.PodReady {
			return []corev1.PodCondition{{Type: c.Type, Status: c.Status, LastTransitionTime: c.LastTransitionTime}}
		}
	}
	return nil
}

// trimStatuses keeps the restart counts of containers that were restarted.
func trimStatuses(all []corev1.ContainerStatus) []corev1.ContainerStatus {
	var kept []corev1.ContainerStatus
	for i := range all {
		if c := &all[i]; c.RestartCount > 0 {
			kept = append(kept, corev1.ContainerStatus{Name: c.Name, RestartCount: c.RestartCount})
		}
	}
	return kept
}
