package endpointslice

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	netutils "k8s.io/utils/net"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/controllers/endpointslice/internal/hints"
	"github.com/flyball-dev/flyball/controllers/internal/pods"
	"github.com/flyball-dev/flyball/controllers/internal/serving"
)

// addressTypes returns the address families of a Service's slices, in a fixed order. If the API server has not set the
// Service's families, it is the family of the cluster IP, or both if there is none: slices of a family that is in use
// must not vanish because an older API server does not name it.
//
// Source: k8s.io/endpointslice v0.37.2 utils.go, getAddressTypesForService
func addressTypes(svc *corev1.Service) []discoveryv1.AddressType {
	var found []discoveryv1.AddressType
	for _, known := range []struct {
		family corev1.IPFamily
		kind   discoveryv1.AddressType
	}{{corev1.IPv4Protocol, discoveryv1.AddressTypeIPv4}, {corev1.IPv6Protocol, discoveryv1.AddressTypeIPv6}} {
		if slices.Contains(svc.Spec.IPFamilies, known.family) {
			found = append(found, known.kind)
		}
	}
	switch {
	case len(found) > 0:
		return found
	case !serving.HasClusterIP(svc):
		return []discoveryv1.AddressType{discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6}
	case netutils.IsIPv6String(svc.Spec.ClusterIP):
		return []discoveryv1.AddressType{discoveryv1.AddressTypeIPv6}
	default:
		return []discoveryv1.AddressType{discoveryv1.AddressTypeIPv4}
	}
}

// endpointOf returns the endpoint of a pod, and reports whether the pod has an address of that family. node is nil if
// the pod's node is not known.
//
// A pod that is being deleted is never ready, unless the Service publishes addresses that are not ready. Serving is the
// pod's Ready condition, even while the pod is being deleted.
//
// Source: k8s.io/endpointslice v0.37.2 utils.go, podToEndpoint
func endpointOf(svc *corev1.Service, pod *corev1.Pod, node *corev1.Node,
	kind discoveryv1.AddressType,
) (discoveryv1.Endpoint, bool) {
	addresses := addressesOf(pod, kind)
	if len(addresses) == 0 {
		return discoveryv1.Endpoint{}, false
	}
	serves, terminating := pods.Ready(pod), pod.DeletionTimestamp != nil
	endpoint := discoveryv1.Endpoint{
		Addresses: addresses,
		Conditions: discoveryv1.EndpointConditions{
			Ready:       ptr.To(svc.Spec.PublishNotReadyAddresses || (serves && !terminating)),
			Serving:     &serves,
			Terminating: &terminating,
		},
		TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
	}
	// Copies: a pointer into the pod would keep all of it alive.
	if pod.Spec.NodeName != "" {
		endpoint.NodeName = ptr.To(pod.Spec.NodeName)
	}
	if hostname := serving.Hostname(svc, pod); hostname != "" {
		endpoint.Hostname = ptr.To(hostname)
	}
	if node != nil && hints.Zone(node) != "" {
		endpoint.Zone = ptr.To(hints.Zone(node))
	}
	return endpoint, true
}

// addressesOf returns the pod's addresses of a family, sorted. It reads only status.podIPs. It parses each address and
// prints it again, so that irregular spellings become one, and leaves out what is not an address.
//
// Source: k8s.io/endpointslice v0.37.2 utils.go, getEndpointAddresses
func addressesOf(pod *corev1.Pod, kind discoveryv1.AddressType) []string {
	var addresses []string
	for i := range pod.Status.PodIPs {
		ip := netutils.ParseIPSloppy(pod.Status.PodIPs[i].IP)
		if ip != nil && netutils.IsIPv6(ip) == (kind == discoveryv1.AddressTypeIPv6) {
			addresses = append(addresses, ip.String())
		}
	}
	slices.Sort(addresses)
	return addresses
}

// portsOf returns the pod's ports behind the Service's ports, in the order in which kube-controller-manager writes
// them, and the names of those that the pod does not have. ports is never nil.
//
// Source: k8s.io/endpointslice v0.37.2 utils.go, getEndpointPorts, and util/controller_utils.go, NewPortMapKey
func portsOf(svc *corev1.Service, pod *corev1.Pod) (ports []discoveryv1.EndpointPort, missing []string) {
	ports = make([]discoveryv1.EndpointPort, 0, len(svc.Spec.Ports))
	for i := range svc.Spec.Ports {
		port := &svc.Spec.Ports[i]
		number, ok := serving.TargetPort(pod, port)
		if !ok {
			missing = append(missing, port.Name)
			continue
		}
		ports = append(ports, discoveryv1.EndpointPort{
			Name: ptr.To(port.Name), Port: &number, Protocol: ptr.To(port.Protocol),
			AppProtocol: copied(port.AppProtocol),
		})
	}
	serving.SortByHash(ports)
	return ports, missing
}

func copied(s *string) *string {
	if s == nil {
		return nil
	}
	return ptr.To(*s)
}
