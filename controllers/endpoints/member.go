package endpoints

import (
	"cmp"
	"net"

	corev1 "k8s.io/api/core/v1"
	netutils "k8s.io/utils/net"

	"github.com/flyball-dev/flyball/controllers/internal/pods"
	"github.com/flyball-dev/flyball/controllers/internal/serving"
)

// isMember reports whether a pod that the Service's selector matches gets an address. A pod that has ended or has no IP
// does not. A pod that is being deleted does only if the Service publishes addresses that are not ready.
//
// Source: k8s.io/endpointslice v0.37.2 util/controller_utils.go, ShouldPodBeInEndpoints
func isMember(svc *corev1.Service, pod *corev1.Pod) bool {
	return serving.HasAddress(pod) && (pod.DeletionTimestamp == nil || svc.Spec.PublishNotReadyAddresses)
}

// isReady reports whether the pod's address counts as ready for the Service.
func isReady(svc *corev1.Service, pod *corev1.Pod) bool {
	return svc.Spec.PublishNotReadyAddresses || pods.Ready(pod)
}

// addressOf returns the pod's address in the Service's one family. It returns false if the pod has none, as may happen
// while a cluster is moved between families.
//
// It reads only status.podIPs. It parses the address and prints it again, so that irregular spellings become one.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/endpoint/endpoints_controller.go, podToEndpointAddressForService
func addressOf(svc *corev1.Service, pod *corev1.Pod) (corev1.EndpointAddress, bool) {
	ip, ok := ipOfFamily(pod.Status.PodIPs, wantedFamily(svc, pod))
	if !ok {
		return corev1.EndpointAddress{}, false
	}
	node := pod.Spec.NodeName // a copy: a pointer into the pod would keep all of it alive
	address := corev1.EndpointAddress{
		IP:       ip,
		Hostname: serving.Hostname(svc, pod),
		NodeName: &node,
		TargetRef: &corev1.ObjectReference{
			Kind:      "Pod",
			Namespace: pod.Namespace,
			Name:      pod.Name,
			UID:       pod.UID,
		},
	}
	return address, true
}

// wantedFamily returns the address family of the Endpoints: the first of the Service's. If the API server has not set
// those, it is the family of the cluster IP, or else of the pod's IP.
func wantedFamily(svc *corev1.Service, pod *corev1.Pod) corev1.IPFamily {
	if len(svc.Spec.IPFamilies) > 0 {
		return svc.Spec.IPFamilies[0]
	}
	ip := pod.Status.PodIP
	if serving.HasClusterIP(svc) {
		ip = svc.Spec.ClusterIP
	}
	if netutils.IsIPv6String(ip) {
		return corev1.IPv6Protocol
	}
	return corev1.IPv4Protocol
}

func ipOfFamily(ips []corev1.PodIP, family corev1.IPFamily) (string, bool) {
	for i := range ips {
		ip := parseIP(ips[i].IP)
		if ip != nil && netutils.IsIPv6(ip) == (family == corev1.IPv6Protocol) {
			return ip.String(), true
		}
	}
	return "", false
}

// parseIP accepts leading zeros in IPv4 addresses and reads the numbers as decimal. The net package refuses them.
func parseIP(s string) net.IP { return netutils.ParseIPSloppy(s) }

// portOf returns the pod's port behind one of the Service's ports. It returns false if the pod has none.
func portOf(pod *corev1.Pod, port *corev1.ServicePort) (corev1.EndpointPort, bool) {
	number, ok := serving.TargetPort(pod, port)
	return corev1.EndpointPort{Name: port.Name, Port: number, Protocol: port.Protocol, AppProtocol: port.AppProtocol},
		ok
}

// compareAddresses orders addresses by the bytes of the IP, then by the UID of the target. An address without a target
// comes first.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/api/v1/endpoints/util.go, LessEndpointAddress
func compareAddresses(a, b *corev1.EndpointAddress) int {
	if c := cmp.Compare(a.IP, b.IP); c != 0 {
		return c
	}
	switch {
	case a.TargetRef == nil && b.TargetRef == nil:
		return 0
	case a.TargetRef == nil:
		return -1
	case b.TargetRef == nil:
		return 1
	}
	return cmp.Compare(a.TargetRef.UID, b.TargetRef.UID)
}
