package endpoints

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion"

	"github.com/flyball-dev/flyball/controllers/internal/serving"
)

const (
	// managedByLabel marks the Endpoints that this controller writes, with managedByValue.
	managedByLabel = "endpoints.kubernetes.io/managed-by"
	managedByValue = "endpoint-controller"
	// truncatedValue is the value of the over-capacity annotation when addresses were left out.
	truncatedValue = "truncated"
)

// observed is what the controller sees of one Service. The objects are shared with the caches: read only.
type observed struct {
	// service is nil when there is none of that name.
	service *corev1.Service
	// pods are the pods that the Service's selector matches.
	pods []*corev1.Pod
	// current is nil when there are no Endpoints.
	current *corev1.Endpoints
	// trigger is the time of the change that this sync publishes, or zero if it is not known.
	trigger time.Time
}

// verb is the kind of write that the Endpoints need.
type verb int

const (
	leave verb = iota
	create
	update
	remove
)

// change is the write, if any, that brings the Endpoints up to date.
type change struct {
	verb verb
	// endpoints is the object to create or update.
	endpoints *corev1.Endpoints
	// skipped are pods that match the selector but are not published, or not with every port. They are for the log.
	skipped []skippedPod
}

type skippedPod struct {
	pod    *corev1.Pod
	reason string
	port   string // empty if the reason concerns no port
}

// plan decides what to do about a Service's Endpoints. If the Service is gone, they are deleted. If it has no selector,
// or only names an outside host, its Endpoints belong to others and are left alone.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/endpoint/endpoints_controller.go, syncService
func plan(o observed) change {
	switch {
	case o.service == nil:
		return change{verb: remove}
	case !serving.HasSelector(o.service):
		return change{verb: leave}
	}
	full, skipped := wantedSubsets(o.service, o.pods)
	subsets, truncated := truncate(full)
	if o.current != nil && upToDate(o.current, o.service, subsets, truncated) {
		return change{verb: leave, skipped: skipped}
	}
	c := change{verb: update, skipped: skipped}
	if o.current == nil {
		c.verb = create
		c.endpoints = &corev1.Endpoints{
			ObjectMeta: metav1.ObjectMeta{Name: o.service.Name, Namespace: o.service.Namespace},
		}
	} else {
		c.endpoints = o.current.DeepCopy()
	}
	c.endpoints.Subsets = subsets
	c.endpoints.Labels = wantedLabels(o.service)
	c.endpoints.Annotations = wantedAnnotations(c.endpoints.Annotations, o.trigger, truncated)
	return c
}

// wantedSubsets returns the canonical layout of the pods' addresses, before truncation.
func wantedSubsets(svc *corev1.Service, pods []*corev1.Pod) ([]corev1.EndpointSubset, []skippedPod) {
	var p packer
	var skipped []skippedPod
	for _, pod := range pods {
		if !isMember(svc, pod) {
			continue
		}
		address, ok := addressOf(svc, pod)
		if !ok {
			skipped = append(skipped, skippedPod{pod: pod, reason: "no address of the Service's family"})
			continue
		}
		s := notReady
		if isReady(svc, pod) {
			s = ready
		}
		if len(svc.Spec.Ports) == 0 && svc.Spec.ClusterIP == corev1.ClusterIPNone {
			p.add(address, portless, s)
		}
		for i := range svc.Spec.Ports {
			port, ok := portOf(pod, &svc.Spec.Ports[i])
			if !ok {
				skipped = append(skipped, skippedPod{pod: pod, reason: "no such port", port: svc.Spec.Ports[i].Name})
				continue
			}
			p.add(address, port, s)
		}
	}
	return p.pack(), skipped
}

// upToDate reports whether a write would change nothing that matters. Subsets in another layout count as equal if
// repacking makes them so: their order may come from another version of the API's types.
func upToDate(current *corev1.Endpoints, svc *corev1.Service, subsets []corev1.EndpointSubset, truncated bool) bool {
	return labelsUpToDate(current.Labels, svc) &&
		capacityUpToDate(current.Annotations, truncated) &&
		(equalSubsets(current.Subsets, subsets) || equalSubsets(RepackSubsets(current.Subsets), RepackSubsets(subsets)))
}

// subsetEquality ignores the difference between empty and nil, and the resource version of the pod, which also changes
// for reasons that Endpoints do not show.
var subsetEquality = conversion.EqualitiesOrDie(func(a, b corev1.ObjectReference) bool {
	a.ResourceVersion, b.ResourceVersion = "", ""
	return a == b
})

func equalSubsets(a, b []corev1.EndpointSubset) bool { return subsetEquality.DeepEqual(a, b) }

// labelsUpToDate reports whether the Endpoints have the controller's label and otherwise the Service's labels. It
// ignores the headless label, which is set whenever something else is written, but is never the reason to write. If the
// Service itself has one of the controller's labels, all labels must equal the wanted ones.
func labelsUpToDate(current map[string]string, svc *corev1.Service) bool {
	if maps.Equal(current, wantedLabels(svc)) {
		return true
	}
	rest := withoutOwn(svc.Labels)
	return len(rest) == len(svc.Labels) && current[managedByLabel] == managedByValue &&
		maps.Equal(withoutOwn(current), rest)
}

func withoutOwn(labels map[string]string) map[string]string {
	own := func(key, _ string) bool { return key == managedByLabel || key == corev1.IsHeadlessService }
	rest := maps.Clone(labels)
	maps.DeleteFunc(rest, own)
	return rest
}

func wantedLabels(svc *corev1.Service) map[string]string {
	labels := make(map[string]string, len(svc.Labels)+2)
	maps.Copy(labels, svc.Labels)
	if serving.HasClusterIP(svc) {
		delete(labels, corev1.IsHeadlessService)
	} else {
		labels[corev1.IsHeadlessService] = ""
	}
	labels[managedByLabel] = managedByValue
	return labels
}

// capacityUpToDate reports whether the annotation agrees with truncated. The value counts, because older versions used
// another one when they did not truncate.
func capacityUpToDate(annotations map[string]string, truncated bool) bool {
	value, found := annotations[corev1.EndpointsOverCapacity]
	if truncated {
		return value == truncatedValue
	}
	return !found
}

// wantedAnnotations sets or removes the controller's two annotations and keeps the rest. It changes the map in place.
func wantedAnnotations(annotations map[string]string, trigger time.Time, truncated bool) map[string]string {
	if annotations == nil {
		annotations = make(map[string]string)
	}
	delete(annotations, corev1.EndpointsLastChangeTriggerTime)
	if !trigger.IsZero() {
		annotations[corev1.EndpointsLastChangeTriggerTime] = trigger.UTC().Format(time.RFC3339Nano)
	}
	delete(annotations, corev1.EndpointsOverCapacity)
	if truncated {
		annotations[corev1.EndpointsOverCapacity] = truncatedValue
	}
	return annotations
}
