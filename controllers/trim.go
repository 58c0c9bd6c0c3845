package controllers

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/informer"
)

// Trim takes away what none of the controllers reads. It is for [informer.FactoryOptions].Transform.
//
// Of every object that is who set which field. An object that is sent without it keeps what the server has. Of a Pod
// it is most: the controllers create, patch and delete Pods, but update none, so that the server never sees what is
// left here.
//
// Differs: kube-controller-manager keeps all of a Pod but the managed fields.
//
// Source: kube-controller-manager v1.37.1 cmd/kube-controller-manager/app/controllermanager.go, CreateControllerContext
func Trim(obj informer.Object) (informer.Object, error) {
	obj.SetManagedFields(nil)
	if pod, ok := obj.(*corev1.Pod); ok {
		return trimPod(pod), nil
	}
	return obj, nil
}

// trimPod is a new Pod, which lets go of the old one, with what decides whose the Pod is, whether it serves and
// where, and in which order Pods of a ReplicaSet are deleted. A controller that reads more of Pods adds it here.
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

// only is what a map holds under one key.
func only(m map[string]string, key string) map[string]string {
	if value, ok := m[key]; ok {
		return map[string]string{key: value}
	}
	return nil
}

// trimContainers keeps, of containers that listen or go on beside the others, where they do and that.
func trimContainers(all []corev1.Container) []corev1.Container {
	var kept []corev1.Container
	for i := range all {
		if c := &all[i]; len(c.Ports) > 0 || c.RestartPolicy != nil {
			kept = append(kept, corev1.Container{Name: c.Name, Ports: c.Ports, RestartPolicy: c.RestartPolicy})
		}
	}
	return kept
}

// trimConditions keeps the one that says whether the Pod is ready, and since when.
func trimConditions(all []corev1.PodCondition) []corev1.PodCondition {
	for i := range all {
		if c := &all[i]; c.Type == corev1.PodReady {
			return []corev1.PodCondition{{Type: c.Type, Status: c.Status, LastTransitionTime: c.LastTransitionTime}}
		}
	}
	return nil
}

// trimStatuses keeps how often containers were started anew, where they were.
func trimStatuses(all []corev1.ContainerStatus) []corev1.ContainerStatus {
	var kept []corev1.ContainerStatus
	for i := range all {
		if c := &all[i]; c.RestartCount > 0 {
			kept = append(kept, corev1.ContainerStatus{Name: c.Name, RestartCount: c.RestartCount})
		}
	}
	return kept
}
