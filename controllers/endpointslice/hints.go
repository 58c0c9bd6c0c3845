package endpointslice

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// hinter says which zones or nodes should use an endpoint; nil is all.
type hinter func(e *discoveryv1.Endpoint) *discoveryv1.EndpointHints

func noHints(*discoveryv1.Endpoint) *discoveryv1.EndpointHints { return nil }

// trafficHints is what the Service's field trafficDistribution asks for: a ready endpoint is for its own zone, or node.
// A value that is not known means no hints.
//
// Source: k8s.io/endpointslice v0.37.2 trafficdist/trafficdist.go
func trafficHints(svc *corev1.Service) hinter {
	if svc.Spec.TrafficDistribution == nil {
		return noHints
	}
	switch *svc.Spec.TrafficDistribution {
	case corev1.ServiceTrafficDistributionPreferClose, corev1.ServiceTrafficDistributionPreferSameZone:
		return func(e *discoveryv1.Endpoint) *discoveryv1.EndpointHints { return closeHints(e, false) }
	case corev1.ServiceTrafficDistributionPreferSameNode:
		return func(e *discoveryv1.Endpoint) *discoveryv1.EndpointHints { return closeHints(e, true) }
	default:
		return noHints
	}
}

func closeHints(e *discoveryv1.Endpoint, node bool) *discoveryv1.EndpointHints {
	if !isReady(e) {
		return nil
	}
	var hints discoveryv1.EndpointHints
	if e.Zone != nil {
		hints.ForZones = []discoveryv1.ForZone{{Name: *e.Zone}}
	}
	if node && e.NodeName != nil {
		hints.ForNodes = []discoveryv1.ForNode{{Name: *e.NodeName}}
	}
	if hints.ForZones == nil && hints.ForNodes == nil {
		return nil
	}
	return &hints
}

func isReady(e *discoveryv1.Endpoint) bool {
	return e.Conditions.Ready != nil && *e.Conditions.Ready
}

// apply sets the hints of all endpoints. A slice that was to be kept is updated if its hints are others.
func (h hinter) apply(out *batch) {
	var keep []*discoveryv1.EndpointSlice
	for _, slice := range out.keep {
		if h.satisfied(slice) {
			keep = append(keep, slice)
		} else {
			out.update = append(out.update, slice.DeepCopy())
		}
	}
	out.keep = keep
	for _, list := range [][]*discoveryv1.EndpointSlice{out.create, out.update} {
		for _, slice := range list {
			for i := range slice.Endpoints {
				slice.Endpoints[i].Hints = h(&slice.Endpoints[i])
			}
		}
	}
}

func (h hinter) satisfied(slice *discoveryv1.EndpointSlice) bool {
	for i := range slice.Endpoints {
		if !equality.Semantic.DeepEqual(slice.Endpoints[i].Hints, h(&slice.Endpoints[i])) {
			return false
		}
	}
	return true
}
