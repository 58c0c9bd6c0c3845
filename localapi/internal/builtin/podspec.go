package builtin

import (
	"cmp"
	"iter"

	corev1 "k8s.io/api/core/v1"
)

// containersOf yields every container of a pod spec in the order of the API: init, regular, ephemeral.
func containersOf(spec *corev1.PodSpec) iter.Seq[*corev1.Container] {
	return func(yield func(*corev1.Container) bool) {
		for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
			for i := range list {
				if !yield(&list[i]) {
					return
				}
			}
		}
		for i := range spec.EphemeralContainers {
			if !yield((*corev1.Container)(&spec.EphemeralContainers[i].EphemeralContainerCommon)) {
				return
			}
		}
	}
}

// isSidecar reports whether an init container keeps running beside the regular ones.
func isSidecar(c *corev1.Container) bool {
	return c != nil && c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// podQOS returns the quality-of-service class of a new Pod: Guaranteed if every container has limits equal to its
// requests for CPU and memory, BestEffort if no container requests anything, otherwise Burstable.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/apis/core/v1/helper/qos/qos.go ComputePodQOS.
func podQOS(spec *corev1.PodSpec) corev1.PodQOSClass {
	if r := spec.Resources; r != nil && (len(r.Requests) > 0 || len(r.Limits) > 0) {
		return resourcesQOS(r)
	}
	var class corev1.PodQOSClass
	for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			c := resourcesQOS(&list[i].Resources)
			if class != "" && c != class {
				return corev1.PodQOSBurstable
			}
			class = c
		}
	}
	return cmp.Or(class, corev1.PodQOSBestEffort)
}

func resourcesQOS(r *corev1.ResourceRequirements) corev1.PodQOSClass {
	guaranteed, asked := true, false
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		request, limit := r.Requests[name], r.Limits[name]
		if !request.IsZero() || !limit.IsZero() {
			asked = true
		}
		if limit.IsZero() || request.Cmp(limit) != 0 {
			guaranteed = false
		}
	}
	switch {
	case !asked:
		return corev1.PodQOSBestEffort
	case guaranteed:
		return corev1.PodQOSGuaranteed
	default:
		return corev1.PodQOSBurstable
	}
}
