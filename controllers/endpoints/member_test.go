package endpoints

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

func publishNotReady(svc *corev1.Service) { svc.Spec.PublishNotReadyAddresses = true }

func inPhase(phase corev1.PodPhase) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.Phase = phase }
}

// Source: k8s.io/endpointslice v0.37.2 util/controller_utils_test.go, TestShouldPodBeInEndpoints
func TestIsMember(t *testing.T) {
	tests := []struct {
		name          string
		pod           *corev1.Pod
		want, publish bool // as a member, without and with publishNotReadyAddresses
	}{
		{"running and ready", pod(1), true, true},
		{"running, not ready", pod(1, unready), true, true},
		{"pending with an address", pod(1, inPhase(corev1.PodPending)), true, true},
		{"unknown", pod(1, inPhase(corev1.PodUnknown)), true, true},
		{"no address", pod(1, withIPs()), false, false},
		{"only podIP", pod(1, func(p *corev1.Pod) { p.Status.PodIPs = nil }), true, true},
		{"succeeded", pod(1, inPhase(corev1.PodSucceeded)), false, false},
		{
			"failed, never restarted",
			pod(1, inPhase(corev1.PodFailed),
				func(p *corev1.Pod) { p.Spec.RestartPolicy = corev1.RestartPolicyNever }), false, false,
		},
		{
			"failed, restarted always",
			pod(1, inPhase(corev1.PodFailed),
				func(p *corev1.Pod) { p.Spec.RestartPolicy = corev1.RestartPolicyAlways }), false, false,
		},
		{"being deleted", pod(1, deleting), false, true},
		{"failed and being deleted", pod(1, deleting, inPhase(corev1.PodFailed)), false, false},
		{"host network", pod(1, func(p *corev1.Pod) { p.Spec.HostNetwork = true }), true, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := isMember(service(), tt.pod); got != tt.want {
				t.Errorf("isMember = %v, want %v", got, tt.want)
			}
			if got := isMember(service(publishNotReady), tt.pod); got != tt.publish {
				t.Errorf("isMember, publishing not ready = %v, want %v", got, tt.publish)
			}
		})
	}
}

// Only the Ready condition decides about readiness, not the phase or the containers.
func TestIsReady(t *testing.T) {
	if !isReady(service(), pod(1, inPhase(corev1.PodPending))) || isReady(service(), pod(1, unready)) {
		t.Error("readiness is not the Ready condition")
	}
	if isReady(service(), pod(1, func(p *corev1.Pod) { p.Status.Conditions = nil })) {
		t.Error("a pod without a Ready condition is ready")
	}
	if !isReady(service(publishNotReady), pod(1, unready)) {
		t.Error("publishNotReadyAddresses does not make the address ready")
	}
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/endpoint/endpoints_controller_test.go,
// TestPodToEndpointAddressForService
func TestAddressFamily(t *testing.T) {
	v4, v6 := "1.2.3.4", "fd00::1"
	families := func(f ...corev1.IPFamily) func(*corev1.Service) {
		return func(svc *corev1.Service) { svc.Spec.IPFamilies = f }
	}
	clusterIP := func(ip string) func(*corev1.Service) {
		return func(svc *corev1.Service) { svc.Spec.IPFamilies, svc.Spec.ClusterIP = nil, ip }
	}
	tests := []struct {
		name string
		svc  *corev1.Service
		ips  []string
		want string // empty: none
	}{
		{"v4 service, v4 pod", service(families(corev1.IPv4Protocol)), []string{v4}, v4},
		{"v4 service, dual pod", service(families(corev1.IPv4Protocol)), []string{v4, v6}, v4},
		{"v4 service, v6 first", service(families(corev1.IPv4Protocol)), []string{v6, v4}, v4},
		{"v6 service, dual pod", service(families(corev1.IPv6Protocol)), []string{v4, v6}, v6},
		{"v6 service, v4 pod", service(families(corev1.IPv6Protocol)), []string{v4}, ""},
		{"v4 service, v6 pod", service(families(corev1.IPv4Protocol)), []string{v6}, ""},
		{
			"dual service takes its first family", service(families(corev1.IPv6Protocol, corev1.IPv4Protocol)),
			[]string{v4, v6},
			v6,
		},
		{"no families, v4 cluster IP", service(clusterIP("10.0.0.1")), []string{v6, v4}, v4},
		{"no families, v6 cluster IP", service(clusterIP("fd00::99")), []string{v4, v6}, v6},
		{"no families, headless, v6 pod", service(clusterIP("None")), []string{v6, v4}, v6},
		{"no families, headless, v4 pod", service(clusterIP("None")), []string{v4, v6}, v4},
		{"no families, no cluster IP", service(clusterIP("")), []string{v6}, v6},
		{"leading zeros", service(), []string{"010.002.003.004"}, "10.2.3.4"},
		{"long form", service(families(corev1.IPv6Protocol)), []string{"fd00:0:0:0::1"}, v6},
		{"not an address", service(), []string{"nonsense", v4}, v4},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := addressOf(tt.svc, pod(1, withIPs(tt.ips...)))
			if ok != (tt.want != "") {
				t.Fatalf("found = %v", ok)
			}
			if ok {
				if diff := cmp.Diff(address(1, atIP(tt.want)), got); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

// podIP alone is not used: only podIPs counts.
func TestAddressNeedsPodIPs(t *testing.T) {
	if got, ok := addressOf(service(), pod(1, func(p *corev1.Pod) { p.Status.PodIPs = nil })); ok {
		t.Errorf("address %v", got)
	}
}

func TestAddressDoesNotPointIntoThePod(t *testing.T) {
	p := pod(1)
	got, _ := addressOf(service(), p)
	if got.NodeName == &p.Spec.NodeName {
		t.Error("the address keeps the cached pod alive")
	}
	if got, _ := addressOf(service(), pod(1, func(p *corev1.Pod) { p.Spec.NodeName = "" })); got.NodeName == nil ||
		*got.NodeName != "" {
		t.Errorf("nodeName of an unscheduled pod = %v, want a pointer to nothing", got.NodeName)
	}
}

// Source: k8s.io/endpointslice v0.37.2 util/controller_utils_test.go, TestShouldSetHostname
func TestHostname(t *testing.T) {
	named := func(hostname, subdomain, namespace string) *corev1.Pod {
		return pod(1,
			func(p *corev1.Pod) { p.Spec.Hostname, p.Spec.Subdomain, p.Namespace = hostname, subdomain, namespace })
	}
	for _, tt := range []struct {
		pod  *corev1.Pod
		want string
	}{
		{named("h", "web", "ns"), "h"},
		{named("", "web", "ns"), ""},
		{named("h", "other", "ns"), ""},
		{named("h", "", "ns"), ""},
		{named("h", "web", "elsewhere"), ""},
	} {
		if got, _ := addressOf(service(), tt.pod); got.Hostname != tt.want {
			t.Errorf("hostname %q subdomain %q: %q, want %q", tt.pod.Spec.Hostname, tt.pod.Spec.Subdomain,
				got.Hostname, tt.want)
		}
	}
}

// Source: k8s.io/endpointslice v0.37.2 utils_test.go, TestFindPort
func TestPortOf(t *testing.T) {
	initContainer := func(policy *corev1.ContainerRestartPolicy) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{
				Name: "init", RestartPolicy: policy,
				Ports: []corev1.ContainerPort{
					{Name: "side", ContainerPort: 9000, Protocol: corev1.ProtocolTCP},
					{Name: "http", ContainerPort: 9001, Protocol: corev1.ProtocolTCP},
				},
			}}
		}
	}
	twoContainers := func(p *corev1.Pod) {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{
			Ports: []corev1.ContainerPort{
				{Name: "http", ContainerPort: 1, Protocol: corev1.ProtocolTCP},
				{Name: "admin", ContainerPort: 2, Protocol: corev1.ProtocolTCP},
			},
		})
	}
	tests := []struct {
		name     string
		pod      *corev1.Pod
		target   intstr.IntOrString
		protocol corev1.Protocol
		want     int32 // 0: none
	}{
		{"number, exposed by nobody", pod(1), intstr.FromInt32(1234), corev1.ProtocolTCP, 1234},
		{"name", pod(1), intstr.FromString("http"), corev1.ProtocolTCP, 8080},
		{"name of another protocol", pod(1), intstr.FromString("http"), corev1.ProtocolUDP, 0},
		{"udp name", pod(1), intstr.FromString("dns"), corev1.ProtocolUDP, 53},
		{"no such name", pod(1), intstr.FromString("nope"), corev1.ProtocolTCP, 0},
		{"the first container wins", pod(1, twoContainers), intstr.FromString("http"), corev1.ProtocolTCP, 8080},
		{"second container", pod(1, twoContainers), intstr.FromString("admin"), corev1.ProtocolTCP, 2},
		{"init container that ends", pod(1, initContainer(nil)), intstr.FromString("side"), corev1.ProtocolTCP, 0},
		{
			"init container with another policy", pod(1, initContainer(ptr.To(corev1.ContainerRestartPolicyNever))),
			intstr.FromString("side"), corev1.ProtocolTCP, 0,
		},
		{
			"sidecar", pod(1, initContainer(ptr.To(corev1.ContainerRestartPolicyAlways))), intstr.FromString("side"),
			corev1.ProtocolTCP, 9000,
		},
		{
			"containers before sidecars", pod(1, initContainer(ptr.To(corev1.ContainerRestartPolicyAlways))),
			intstr.FromString("http"), corev1.ProtocolTCP, 8080,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			app := ptr.To("h2c")
			got, ok := portOf(tt.pod,
				&corev1.ServicePort{
					Name: "p", Port: 80, TargetPort: tt.target, Protocol: tt.protocol,
					AppProtocol: app,
				})
			if ok != (tt.want != 0) {
				t.Fatalf("found = %v, port %v", ok, got)
			}
			if want := (corev1.EndpointPort{Name: "p", Port: tt.want, Protocol: tt.protocol, AppProtocol: app}); ok &&
				got != want {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}
