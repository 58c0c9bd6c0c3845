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
	// truncatedValue is what the over-capacity annotation says when addresses were left out.
	truncatedValue = "truncated"
)

// observed is what the controller sees of one Service. The objects are shared with the caches: read only.
type observed struct {
	// service is nil when there is none of that name.
	service *corev1.Service
	// pods are those that the Service's selector matches.
	pods []*corev1.Pod
	// current is nil when there are no Endpoints.
	current *corev1.Endpoints
	// trigger is when the change that is being carried out was made; zero if that is not known.
	trigger time.Time
}

// verb is what is to be done with the Endpoints.
type verb int

const (
	leave verb = iota
	create
	update
	remove
)

// change is the one write, or none, that brings the Endpoints to what they should be.
type change struct {
	verb verb
	// endpoints is the object to create or update.
	endpoints *corev1.Endpoints
	// skipped are pods, matched by the selector, of which something could not be published. They are for the log.
	skipped []skippedPod
}

type skippedPod struct {
	pod    *corev1.Pod
	reason string
	port   string // empty if it is not about a port
}

// plan decides what to do about a Service's Endpoints. A Service that is gone takes them along; one without a
// selector, or that only names an outside host, has none of ours, and what others keep under its name is left alone.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/controller/endpoint/endpoints_controller.go, syncService
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

// wantedSubsets returns the canonical layout of the pods' addresses, however many they are.
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

// upToDate reports whether a write would change nothing that matters. Subsets in another layout than ours are as
// good: the order may come from another version of the API's types.
func upToDate(current *corev1.Endpoints, svc *corev1.Service, subsets []corev1.EndpointSubset, truncated bool) bool {
	return labelsUpToDate(current.Labels, svc) &&
		capacityUpToDate(current.Annotations, truncated) &&
		(equalSubsets(current.Subsets, subsets) || equalSubsets(RepackSubsets(current.Subsets), RepackSubsets(subsets)))
}

// subsetEquality ignores the resource version of the pod, which changes with things that are not ours, and the
// difference between empty and nil.
var subsetEquality = conversion.EqualitiesOrDie(func(a, b corev1.ObjectReference) bool {
	a.ResourceVersion, b.ResourceVersion = "", ""
	return a == b
})

func equalSubsets(a, b []corev1.EndpointSubset) bool { return subsetEquality.DeepEqual(a, b) }

// labelsUpToDate reports whether the Endpoints carry our mark and otherwise the Service's labels. The headless label
// is not looked at: it is set whenever something else is written, and never the reason to write. A Service that
// carries one of our labels itself cannot be compared in this way; there, all must be as they are wanted.
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

// capacityUpToDate reports whether the annotation says what is so. Any value, of a version that did not truncate,
// was once in use.
func capacityUpToDate(annotations map[string]string, truncated bool) bool {
	value, found := annotations[corev1.EndpointsOverCapacity]
	if truncated {
		return value == truncatedValue
	}
	return !found
}

// wantedAnnotations changes our two of the annotations and keeps the rest.
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
