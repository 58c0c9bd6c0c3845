package endpointslicemirroring

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	netutils "k8s.io/utils/net"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/controllers/internal/serving"
	"github.com/flyball-dev/flyball/controllers/internal/sliceset"
)

// newSlice returns a slice for the group, without endpoints. It has the labels and annotations of the Endpoints, apart
// from annotations that describe the Endpoints themselves: when they last changed, and what kubectl applied.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/endpointslicemirroring/utils.go, newEndpointSlice
func newSlice(ep *corev1.Endpoints, g *group) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:    ep.Namespace,
			GenerateName: sliceset.NamePrefix(ep.Name),
			Labels:       make(map[string]string, len(ep.Labels)+2),
			Annotations:  make(map[string]string, len(ep.Annotations)),
			OwnerReferences: []metav1.OwnerReference{
				*metav1.NewControllerRef(ep, corev1.SchemeGroupVersion.WithKind("Endpoints")),
			},
		},
		AddressType: g.kind,
		Ports:       g.ports,
	}
	maps.Copy(s.Labels, ep.Labels)
	s.Labels[discoveryv1.LabelServiceName] = ep.Name
	s.Labels[discoveryv1.LabelManagedBy] = ManagedBy
	maps.Copy(s.Annotations, ep.Annotations)
	delete(s.Annotations, corev1.EndpointsLastChangeTriggerTime)
	delete(s.Annotations, corev1.LastAppliedConfigAnnotation)
	return s
}

// describes reports whether the metadata of a slice needs no write: its owner, labels and annotations are those of
// wanted.
func describes(slice *discoveryv1.EndpointSlice, ep *corev1.Endpoints, wanted *discoveryv1.EndpointSlice) bool {
	return sliceset.OwnedBy(slice, "Endpoints", ep.UID) && maps.Equal(slice.Labels, wanted.Labels) &&
		maps.Equal(slice.Annotations, wanted.Annotations)
}

// rewritten returns a copy of a slice with the content, labels, annotations and owner of another.
func rewritten(slice, wanted *discoveryv1.EndpointSlice) *discoveryv1.EndpointSlice {
	updated := *wanted
	updated.TypeMeta = slice.TypeMeta
	updated.ObjectMeta = *slice.ObjectMeta.DeepCopy()
	updated.Labels, updated.Annotations = wanted.Labels, wanted.Annotations
	updated.OwnerReferences = wanted.OwnerReferences
	return &updated
}

// endpointOf converts an address. It returns false if that is not an IP address. It prints the address anew, so that
// irregular spellings become one.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/endpointslicemirroring/utils.go, addressToEndpoint
func endpointOf(a *corev1.EndpointAddress, ready bool) (discoveryv1.Endpoint, discoveryv1.AddressType, bool) {
	ip := netutils.ParseIPSloppy(a.IP)
	if ip == nil {
		return discoveryv1.Endpoint{}, "", false
	}
	kind := discoveryv1.AddressTypeIPv4
	if ip.To4() == nil {
		kind = discoveryv1.AddressTypeIPv6
	}
	// Copies: what the client reads into the slice must not reach the cache.
	endpoint := discoveryv1.Endpoint{
		Addresses:  []string{ip.String()},
		Conditions: discoveryv1.EndpointConditions{Ready: &ready},
		TargetRef:  a.TargetRef.DeepCopy(),
	}
	if a.NodeName != nil {
		endpoint.NodeName = ptr.To(*a.NodeName)
	}
	if a.Hostname != "" {
		endpoint.Hostname = ptr.To(a.Hostname)
	}
	return endpoint, kind, true
}

// portsOf converts the ports of a subset, in the order in which kube-controller-manager writes them. The result is
// never nil.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/endpointslicemirroring/utils.go, epPortsToEpsPorts
func portsOf(ports []corev1.EndpointPort) []discoveryv1.EndpointPort {
	converted := make([]discoveryv1.EndpointPort, 0, len(ports))
	for i := range ports {
		p := ports[i].DeepCopy()
		converted = append(converted, discoveryv1.EndpointPort{
			Name: &p.Name, Port: &p.Port, Protocol: &p.Protocol, AppProtocol: p.AppProtocol,
		})
	}
	serving.SortByHash(converted)
	return converted
}
