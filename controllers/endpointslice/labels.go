package endpointslice

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/flyball-dev/flyball/controllers/internal/serving"
)

// wantedLabels returns the Service's own labels, and the three that describe the slice.
//
// Source: k8s.io/endpointslice v0.37.2 utils.go, setEndpointSliceLabels
func wantedLabels(svc *corev1.Service) map[string]string {
	labels := make(map[string]string, len(svc.Labels)+3)
	maps.Copy(labels, svc.Labels)
	delete(labels, corev1.IsHeadlessService)
	if !serving.HasClusterIP(svc) {
		labels[corev1.IsHeadlessService] = ""
	}
	labels[discoveryv1.LabelServiceName] = svc.Name
	labels[discoveryv1.LabelManagedBy] = ManagedBy
	return labels
}

// labelsUpToDate reports whether the slice carries the Service's labels and no others, apart from the three reserved
// ones. The index found the slice by two of these. The third, the headless label, is set whenever something else is
// written, but is never the reason to write.
//
// Source: k8s.io/endpointslice v0.37.2 utils.go, setEndpointSliceLabels
func labelsUpToDate(slice *discoveryv1.EndpointSlice, svc *corev1.Service) bool {
	return coveredBy(slice.Labels, svc.Labels) && coveredBy(svc.Labels, slice.Labels)
}

// coveredBy reports whether b has all labels of a, apart from reserved ones.
func coveredBy(a, b map[string]string) bool {
	for key, value := range a {
		if reserved(key) {
			continue
		}
		if other, found := b[key]; !found || other != value {
			return false
		}
	}
	return true
}

func reserved(label string) bool {
	return label == discoveryv1.LabelServiceName || label == discoveryv1.LabelManagedBy ||
		label == corev1.IsHeadlessService
}
