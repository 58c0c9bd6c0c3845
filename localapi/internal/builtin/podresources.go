package builtin

import corev1 "k8s.io/api/core/v1"

// podResources returns the sum of what the containers of a pod need at once. Init containers run one after the other,
// each beside the sidecars that were started before it. What is given for the pod as a whole takes the place of a sum.
func podResources(spec *corev1.PodSpec,
	of func(*corev1.ResourceRequirements) corev1.ResourceList,
) corev1.ResourceList {
	sum, sidecars, most := corev1.ResourceList{}, corev1.ResourceList{}, corev1.ResourceList{}
	for i := range spec.Containers {
		addResources(sum, of(&spec.Containers[i].Resources))
	}
	for i := range spec.InitContainers {
		c := &spec.InitContainers[i]
		atOnce := corev1.ResourceList{}
		if isSidecar(c) {
			addResources(sum, of(&c.Resources))
			addResources(sidecars, of(&c.Resources))
		} else {
			addResources(atOnce, of(&c.Resources))
		}
		addResources(atOnce, sidecars)
		raiseResources(most, atOnce)
	}
	raiseResources(sum, most)
	if spec.Resources != nil {
		for name, q := range of(spec.Resources) {
			if ofPods(name) {
				sum[name] = q
			}
		}
	}
	return sum
}

func requestsOf(r *corev1.ResourceRequirements) corev1.ResourceList { return r.Requests }
func limitsOf(r *corev1.ResourceRequirements) corev1.ResourceList   { return r.Limits }

func addResources(sum, list corev1.ResourceList) {
	for name, q := range list {
		total := sum[name].DeepCopy()
		total.Add(q)
		sum[name] = total
	}
}

// raiseResources raises each quantity of most to that of list, if it is lower.
func raiseResources(most, list corev1.ResourceList) {
	for name, q := range list {
		if highest, ok := most[name]; !ok || q.Cmp(highest) > 0 {
			most[name] = q.DeepCopy()
		}
	}
}

// defaultPodResources completes the resources that a pod states for itself as a whole. What is missing comes from the
// sum of its containers; a request, else, from the limit. A limit is set only if every container has one.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/api/pod/util.go DefaultPodLevelResources.
func defaultPodResources(spec *corev1.PodSpec) {
	r := spec.Resources
	if r == nil || len(r.Requests)+len(r.Limits) == 0 {
		return
	}
	for name, sum := range podResources(spec, limitsOf) {
		if _, asked := r.Requests[name]; isHugePages(name) && !asked {
			setDefaultList(&r.Limits, corev1.ResourceList{name: sum})
		}
	}
	for name, sum := range podResources(spec, requestsOf) {
		if ofPods(name) && overcommits(name) {
			setDefaultList(&r.Requests, corev1.ResourceList{name: sum})
		}
	}
	for name, limit := range r.Limits {
		if ofPods(name) {
			setDefaultList(&r.Requests, corev1.ResourceList{name: limit})
		}
	}
	for name, sum := range podResources(spec, limitsOf) {
		request, asked := r.Requests[name]
		if !asked || !ofPods(name) || unlimited(spec, name) {
			continue
		}
		if request.Cmp(sum) > 0 {
			sum = request
		}
		setDefaultList(&r.Limits, corev1.ResourceList{name: sum})
	}
}

// unlimited reports whether a container has no limit of a resource.
func unlimited(spec *corev1.PodSpec, name corev1.ResourceName) bool {
	for c := range containersOf(spec) {
		if _, ok := c.Resources.Limits[name]; !ok {
			return true
		}
	}
	return false
}

// ofPods reports whether a pod as a whole can have a resource.
//
// Source: k8s.io/component-helpers v0.37.2 resource/helpers.go IsSupportedPodLevelResource.
func ofPods(name corev1.ResourceName) bool {
	return name == corev1.ResourceCPU || name == corev1.ResourceMemory || isHugePages(name)
}
