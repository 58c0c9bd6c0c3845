package hints

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// Func returns the hints of an endpoint: which zones or nodes should use it. Nil means all.
type Func func(e *discoveryv1.Endpoint) *discoveryv1.EndpointHints

func none(*discoveryv1.Endpoint) *discoveryv1.EndpointHints { return nil }

// Traffic returns the hints that the Service's field trafficDistribution asks for: a ready endpoint is for its own zone
// or node. An unknown value means no hints.
//
// Source: k8s.io/endpointslice v0.37.2 trafficdist/trafficdist.go
func Traffic(svc *corev1.Service) Func {
	if svc.Spec.TrafficDistribution == nil {
		return none
	}
	switch *svc.Spec.TrafficDistribution {
	case corev1.ServiceTrafficDistributionPreferClose, corev1.ServiceTrafficDistributionPreferSameZone:
		return ownZone
	case corev1.ServiceTrafficDistributionPreferSameNode:
		return ownNode
	default:
		return none
	}
}

func ownZone(e *discoveryv1.Endpoint) *discoveryv1.EndpointHints { return closeTo(e, false) }

func ownNode(e *discoveryv1.Endpoint) *discoveryv1.EndpointHints { return closeTo(e, true) }

func closeTo(e *discoveryv1.Endpoint, node bool) *discoveryv1.EndpointHints {
	if !IsReady(e) {
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

// IsReady reports whether the endpoint's condition Ready is true.
func IsReady(e *discoveryv1.Endpoint) bool {
	return e.Conditions.Ready != nil && *e.Conditions.Ready
}

// Apply sets the hints of all endpoints. The package comment describes its arguments and results.
func Apply(hint Func, written, kept []*discoveryv1.EndpointSlice) (changed, unchanged []*discoveryv1.EndpointSlice) {
	for _, slice := range kept {
		if satisfied(hint, slice) {
			unchanged = append(unchanged, slice)
		} else {
			changed = append(changed, slice.DeepCopy())
		}
	}
	for _, list := range [][]*discoveryv1.EndpointSlice{written, changed} {
		for _, slice := range list {
			for i := range slice.Endpoints {
				slice.Endpoints[i].Hints = hint(&slice.Endpoints[i])
			}
		}
	}
	return changed, unchanged
}

func satisfied(hint Func, slice *discoveryv1.EndpointSlice) bool {
	for i := range slice.Endpoints {
		if !equality.Semantic.DeepEqual(slice.Endpoints[i].Hints, hint(&slice.Endpoints[i])) {
			return false
		}
	}
	return true
}
