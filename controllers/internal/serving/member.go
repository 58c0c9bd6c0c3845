package serving

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/flyball-dev/flyball/controllers/internal/pods"
)

// HasAddress reports whether a pod can be reached at all: it has not ended, and has an IP. It may be being deleted.
//
// Source: k8s.io/endpointslice v0.37.2 util/controller_utils.go, ShouldPodBeInEndpoints
func HasAddress(pod *corev1.Pod) bool {
	return !pods.Terminal(pod) && (pod.Status.PodIP != "" || len(pod.Status.PodIPs) > 0)
}

// Hostname returns the name that the pod has in the Service's domain, or "" if it has none.
//
// Source: k8s.io/endpointslice v0.37.2 util/controller_utils.go, ShouldSetHostname
func Hostname(svc *corev1.Service, pod *corev1.Pod) string {
	if pod.Spec.Subdomain != svc.Name || pod.Namespace != svc.Namespace {
		return ""
	}
	return pod.Spec.Hostname
}

// HasClusterIP reports whether the Service has an address of its own. A headless Service has none, nor has one to which
// none was assigned yet.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/apis/core/v1/helper/helpers.go, IsServiceIPSet
func HasClusterIP(svc *corev1.Service) bool {
	return svc.Spec.ClusterIP != corev1.ClusterIPNone && svc.Spec.ClusterIP != ""
}

// HasSelector reports whether a controller publishes the Service's addresses. If the Service has no selector, or only
// names an outside host, the controllers leave alone what others publish under its name.
func HasSelector(svc *corev1.Service) bool {
	return svc.Spec.Type != corev1.ServiceTypeExternalName && svc.Spec.Selector != nil
}

// TargetPort returns the number of the pod's port behind one of the Service's ports. It returns false if the pod has
// none. A number is used as it is. A name is looked up among the ports of the same protocol, in the containers and then
// in the init containers that keep running.
//
// Source: k8s.io/endpointslice v0.37.2 utils.go, FindPort
func TargetPort(pod *corev1.Pod, port *corev1.ServicePort) (int32, bool) {
	if port.TargetPort.Type != intstr.String {
		return port.TargetPort.IntVal, true
	}
	name := port.TargetPort.StrVal
	for i := range pod.Spec.Containers {
		if number, ok := containerPort(&pod.Spec.Containers[i], name, port.Protocol); ok {
			return number, true
		}
	}
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		if c.RestartPolicy == nil || *c.RestartPolicy != corev1.ContainerRestartPolicyAlways {
			continue
		}
		if number, ok := containerPort(c, name, port.Protocol); ok {
			return number, true
		}
	}
	return 0, false
}

func containerPort(c *corev1.Container, name string, protocol corev1.Protocol) (int32, bool) {
	for i := range c.Ports {
		if c.Ports[i].Name == name && c.Ports[i].Protocol == protocol {
			return c.Ports[i].ContainerPort, true
		}
	}
	return 0, false
}
