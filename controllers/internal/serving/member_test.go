package serving

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// Source: k8s.io/endpointslice v0.37.2 util/controller_utils_test.go, TestShouldPodBeInEndpoints
func TestHasAddress(t *testing.T) {
	for _, tt := range []struct {
		phase  corev1.PodPhase
		ip     string
		ips    []corev1.PodIP
		wanted bool
	}{
		{corev1.PodRunning, "10.0.0.1", nil, true},
		{corev1.PodPending, "", []corev1.PodIP{{IP: "10.0.0.1"}}, true},
		{corev1.PodRunning, "", nil, false},
		{corev1.PodSucceeded, "10.0.0.1", nil, false},
		{corev1.PodFailed, "10.0.0.1", nil, false},
	} {
		p := &corev1.Pod{Status: corev1.PodStatus{Phase: tt.phase, PodIP: tt.ip, PodIPs: tt.ips}}
		if got := HasAddress(p); got != tt.wanted {
			t.Errorf("%+v: %v", tt, got)
		}
	}
}

// Source: k8s.io/endpointslice v0.37.2 utils_test.go, TestFindPort
func TestTargetPort(t *testing.T) {
	port := func(name string, number int32) []corev1.ContainerPort {
		return []corev1.ContainerPort{{Name: name, ContainerPort: number, Protocol: corev1.ProtocolTCP}}
	}
	p := &corev1.Pod{Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Ports: port("a", 1)}, {Ports: port("b", 2)}, {Ports: port("a", 3)}},
		InitContainers: []corev1.Container{
			{Ports: port("setup", 4)},
			{Ports: port("b", 5), RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)},
			{Ports: port("sidecar", 6), RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)},
		},
	}}
	for _, tt := range []struct {
		target   intstr.IntOrString
		protocol corev1.Protocol
		want     int32
	}{
		{intstr.FromInt32(80), corev1.ProtocolTCP, 80},
		{intstr.FromInt32(0), corev1.ProtocolTCP, 0},
		{intstr.FromString("a"), corev1.ProtocolTCP, 1},
		{intstr.FromString("b"), corev1.ProtocolTCP, 2},
		{intstr.FromString("a"), corev1.ProtocolUDP, -1},
		{intstr.FromString("setup"), corev1.ProtocolTCP, -1},
		{intstr.FromString("sidecar"), corev1.ProtocolTCP, 6},
		{intstr.FromString("none"), corev1.ProtocolTCP, -1},
	} {
		got, ok := TargetPort(p, &corev1.ServicePort{TargetPort: tt.target, Protocol: tt.protocol})
		if ok != (tt.want >= 0) || ok && got != tt.want {
			t.Errorf("%v/%s: %d, %v", tt.target, tt.protocol, got, ok)
		}
	}
}

func TestServiceFacts(t *testing.T) {
	for _, tt := range []struct {
		spec                corev1.ServiceSpec
		selector, clusterIP bool
	}{
		{corev1.ServiceSpec{}, false, false},
		{corev1.ServiceSpec{Selector: map[string]string{}, ClusterIP: "10.0.0.1"}, true, true},
		{corev1.ServiceSpec{Selector: map[string]string{"a": "b"}, ClusterIP: corev1.ClusterIPNone}, true, false},
		{corev1.ServiceSpec{Selector: map[string]string{"a": "b"}, Type: corev1.ServiceTypeExternalName}, false, false},
	} {
		svc := service(func(s *corev1.Service) { s.Spec = tt.spec })
		if HasSelector(svc) != tt.selector || HasClusterIP(svc) != tt.clusterIP {
			t.Errorf("%+v: selector %v, cluster IP %v", tt.spec, HasSelector(svc), HasClusterIP(svc))
		}
	}
	named := pod(1, func(p *corev1.Pod) { p.Spec.Hostname, p.Spec.Subdomain = "h", "web" })
	if got := Hostname(service(), named); got != "h" {
		t.Errorf("hostname %q", got)
	}
	named.Spec.Subdomain = "other"
	if got := Hostname(service(), named); got != "" {
		t.Errorf("hostname of another domain %q", got)
	}
}
