package builtin

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
)

var (
	pods   = corev1.Resource("pods")
	claims = corev1.Resource("persistentvolumeclaims")
	quotas = corev1.Resource("resourcequotas")

	// claimResources are also counted for each storage class, whose name and classSuffix then stand before theirs.
	claimResources = []corev1.ResourceName{corev1.ResourcePersistentVolumeClaims, corev1.ResourceRequestsStorage}
)

const classSuffix = ".storageclass.storage.k8s.io/"

// userOf returns the resource whose objects use up a quantity of a quota. It is empty if there is none.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/quota/v1/evaluator/core, MatchingResources of each evaluator.
func userOf(name corev1.ResourceName) schema.GroupResource {
	text := string(name)
	_, ofClass, _ := strings.Cut(text, classSuffix)
	switch object, counts := strings.CutPrefix(text, "count/"); {
	case counts:
		if object != "events" && object != "events.events.k8s.io" {
			return schema.ParseGroupResource(object)
		}
	case slices.Contains(claimResources, name), slices.Contains(claimResources, corev1.ResourceName(ofClass)):
		return claims
	case objectCounts.Has(name):
		object, _, _ = strings.Cut(text, ".") // services.nodeports
		return corev1.Resource(object)
	case isQuotaResource(name),
		strings.HasPrefix(text, corev1.DefaultResourceRequestsPrefix) && !isNativeResource(name):
		return pods
	}
	return schema.GroupResource{}
}

// usage returns what an object of a resource uses up of a quota: nothing if it is nil or not in the quota's scope.
func usage(q *corev1.ResourceQuota, gr schema.GroupResource, obj runtime.Object) corev1.ResourceList {
	if obj == nil || !inScope(q, obj) {
		return corev1.ResourceList{}
	}
	var all corev1.ResourceList
	switch obj := obj.(type) {
	case *corev1.Pod:
		all = podUsage(obj)
	case *corev1.Service:
		all = serviceUsage(obj)
	case *corev1.PersistentVolumeClaim:
		all = claimUsage(obj)
	default:
		all = corev1.ResourceList{corev1.ResourceName(gr.Resource): units(1)} // of some kinds also the name
	}
	all[corev1.ResourceName("count/"+gr.String())] = units(1)
	maps.DeleteFunc(all, func(name corev1.ResourceName, _ resource.Quantity) bool {
		_, limited := q.Spec.Hard[name]
		return !limited || userOf(name) != gr
	})
	return all
}

func units(n int) resource.Quantity { return *resource.NewQuantity(int64(n), resource.DecimalSI) }

// podUsage returns what a pod uses up. A pod that has ended, or should have by now, only counts as an object.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/quota/v1/evaluator/core/pods.go PodUsageFunc.
func podUsage(pod *corev1.Pod) corev1.ResourceList {
	ended := pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
	if grace := pod.DeletionGracePeriodSeconds; pod.DeletionTimestamp != nil && grace != nil {
		ended = ended || time.Since(pod.DeletionTimestamp.Time) > time.Duration(*grace)*time.Second
	}
	if ended {
		return corev1.ResourceList{}
	}
	requests, limits := podResources(&pod.Spec, requestsOf), podResources(&pod.Spec, limitsOf)
	addResources(requests, pod.Spec.Overhead)
	for name, extra := range pod.Spec.Overhead {
		if limit := limits[name]; !limit.IsZero() {
			addResources(limits, corev1.ResourceList{name: extra})
		}
	}
	used := computeUsage(requests, limits)
	used[corev1.ResourcePods] = units(1)
	return used
}

// computeUsage gives requests and limits the names that they have in quotas.
func computeUsage(requests, limits corev1.ResourceList) corev1.ResourceList {
	used := corev1.ResourceList{}
	for name, quantity := range requests {
		used[name], used[corev1.DefaultResourceRequestsPrefix+name] = quantity, quantity
	}
	for name, quantity := range limits {
		used["limits."+name] = quantity
	}
	return used
}

// unstated returns an error if a container lacks a request or a limit that it must have because a quota limits it. The
// resources of a pod as a whole take their place.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/quota/v1/evaluator/core/pods.go Constraints.
func unstated(q *corev1.ResourceQuota, pod *corev1.Pod) error {
	if r := pod.Spec.Resources; r != nil && len(r.Requests)+len(r.Limits) > 0 {
		return nil
	}
	var missing []string
	for _, name := range sortedKeys(q.Spec.Hard) {
		plain := strings.TrimPrefix(strings.TrimPrefix(string(name), "requests."), "limits.")
		if plain != string(corev1.ResourceCPU) && plain != string(corev1.ResourceMemory) {
			continue
		}
		var containers []string
		for _, c := range slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers) {
			if _, ok := computeUsage(c.Resources.Requests, c.Resources.Limits)[name]; !ok {
				containers = append(containers, c.Name)
			}
		}
		if containers != nil {
			slices.Sort(containers)
			missing = append(missing, string(name)+" for: "+strings.Join(containers, ","))
		}
	}
	if missing == nil {
		return nil
	}
	return fmt.Errorf("must specify %s", strings.Join(missing, "; "))
}

// serviceUsage counts node ports before they are allocated.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/quota/v1/evaluator/core/services.go Usage.
func serviceUsage(s *corev1.Service) corev1.ResourceList {
	ports, balancers := 0, 0
	switch s.Spec.Type {
	case corev1.ServiceTypeNodePort:
		ports = len(s.Spec.Ports)
	case corev1.ServiceTypeLoadBalancer:
		balancers = 1
		for _, p := range s.Spec.Ports {
			if p.NodePort != 0 || ptr.Deref(s.Spec.AllocateLoadBalancerNodePorts, true) {
				ports++
			}
		}
	}
	return corev1.ResourceList{
		corev1.ResourceServices: units(1), corev1.ResourceServicesNodePorts: units(ports),
		corev1.ResourceServicesLoadBalancers: units(balancers),
	}
}

// Source: k8s.io/kubernetes v1.37.2 pkg/quota/v1/evaluator/core/persistent_volume_claims.go Usage.
func claimUsage(c *corev1.PersistentVolumeClaim) corev1.ResourceList {
	all := corev1.ResourceList{corev1.ResourcePersistentVolumeClaims: units(1)}
	if requested, ok := c.Spec.Resources.Requests[corev1.ResourceStorage]; ok {
		if allocated := c.Status.AllocatedResources[corev1.ResourceStorage]; allocated.Cmp(requested) > 0 {
			requested = allocated
		}
		requested = requested.DeepCopy()
		requested.RoundUp(0)
		all[corev1.ResourceRequestsStorage] = requested
	}
	class, ok := c.Annotations[corev1.BetaStorageClassAnnotation]
	if !ok {
		class = ptr.Deref(c.Spec.StorageClassName, "")
	}
	for _, name := range claimResources {
		if quantity, ok := all[name]; ok && class != "" {
			all[corev1.ResourceName(class+classSuffix)+name] = quantity
		}
	}
	return all
}

// inScope reports whether a quota is about an object. One with scopes is only about pods.
func inScope(q *corev1.ResourceQuota, obj runtime.Object) bool {
	var selectors []corev1.ScopedResourceSelectorRequirement
	if q.Spec.ScopeSelector != nil {
		selectors = slices.Clone(q.Spec.ScopeSelector.MatchExpressions)
	}
	for _, scope := range q.Spec.Scopes {
		selectors = append(selectors,
			corev1.ScopedResourceSelectorRequirement{ScopeName: scope, Operator: corev1.ScopeSelectorOpExists})
	}
	pod, ok := obj.(*corev1.Pod)
	return !slices.ContainsFunc(selectors, func(s corev1.ScopedResourceSelectorRequirement) bool {
		return !ok || !podInScope(&s, pod)
	})
}

// Source: k8s.io/kubernetes v1.37.2 pkg/quota/v1/evaluator/core/pods.go podMatchesScopeFunc.
func podInScope(s *corev1.ScopedResourceSelectorRequirement, pod *corev1.Pod) bool {
	class := pod.Spec.PriorityClassName
	switch s.ScopeName {
	case corev1.ResourceQuotaScopeTerminating, corev1.ResourceQuotaScopeNotTerminating:
		return terminating(pod) == (s.ScopeName == corev1.ResourceQuotaScopeTerminating)
	case corev1.ResourceQuotaScopeBestEffort, corev1.ResourceQuotaScopeNotBestEffort:
		bestEffort := podQOS(&pod.Spec) == corev1.PodQOSBestEffort
		return bestEffort == (s.ScopeName == corev1.ResourceQuotaScopeBestEffort)
	case corev1.ResourceQuotaScopeCrossNamespacePodAffinity:
		return crossesNamespaces(pod.Spec.Affinity)
	case corev1.ResourceQuotaScopePriorityClass:
		switch s.Operator {
		case corev1.ScopeSelectorOpIn:
			return slices.Contains(s.Values, class)
		case corev1.ScopeSelectorOpNotIn:
			return !slices.Contains(s.Values, class)
		}
		return (class != "") == (s.Operator == corev1.ScopeSelectorOpExists)
	}
	return false
}

func terminating(pod *corev1.Pod) bool { return pod.Spec.ActiveDeadlineSeconds != nil }

// crossesNamespaces reports whether the place of a pod depends on pods of other namespaces.
func crossesNamespaces(a *corev1.Affinity) bool {
	if a == nil {
		return false
	}
	near, far := ptr.Deref(a.PodAffinity, corev1.PodAffinity{}), ptr.Deref(a.PodAntiAffinity, corev1.PodAntiAffinity{})
	terms := slices.Concat(near.RequiredDuringSchedulingIgnoredDuringExecution,
		far.RequiredDuringSchedulingIgnoredDuringExecution)
	for _, w := range slices.Concat(near.PreferredDuringSchedulingIgnoredDuringExecution,
		far.PreferredDuringSchedulingIgnoredDuringExecution) {
		terms = append(terms, w.PodAffinityTerm)
	}
	return slices.ContainsFunc(terms, func(t corev1.PodAffinityTerm) bool {
		return len(t.Namespaces) > 0 || t.NamespaceSelector != nil
	})
}
