package builtin

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/localapi/internal/resource"
)

func service() *resource.Definition {
	d := namespaced[corev1.Service, corev1.ServiceList](corev1.SchemeGroupVersion, "services", "svc")
	d.Categories = []string{"all"}
	withStatus(d)
	d.CreateOnUpdate, d.DeleteReturnsObject = true, true
	d.Subresources = map[string]resource.Subresource{"proxy": serviceProxy()}
	d.ValidateName = apivalidation.NameIsDNSLabel
	d.Default = mutate(defaultService)
	d.PrepareCreate = prepare(prepareServiceCreate)
	d.PrepareUpdate = carry(prepareServiceUpdate)
	d.Allocate = allocateService
	d.Validate = rules(validateService)
	d.ValidateUpdate = updateRules(validateServiceUpdate)
	d.ValidateStatusUpdate = updateRules(validateServiceStatus)
	d.Fields = selectableFields("spec.clusterIP", "spec.type")
	listed(d, serviceRow)
	return d
}

// Source: k8s.io/kubernetes v1.37.2 pkg/apis/core/v1/defaults.go SetDefaults_Service.
func defaultService(s *corev1.Service) {
	spec := &s.Spec
	setDefault(&spec.Type, corev1.ServiceTypeClusterIP)
	setDefault(&spec.SessionAffinity, corev1.ServiceAffinityNone)
	switch spec.SessionAffinity {
	case corev1.ServiceAffinityNone:
		spec.SessionAffinityConfig = nil
	case corev1.ServiceAffinityClientIP:
		if c := spec.SessionAffinityConfig; c == nil || c.ClientIP == nil || c.ClientIP.TimeoutSeconds == nil {
			timeout := corev1.DefaultClientIPServiceAffinitySeconds
			spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{
				ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: &timeout},
			}
		}
	}
	for i := range spec.Ports {
		p := &spec.Ports[i]
		setDefault(&p.Protocol, corev1.ProtocolTCP)
		if p.TargetPort == intstr.FromInt32(0) || p.TargetPort == intstr.FromString("") {
			p.TargetPort = intstr.FromInt32(p.Port)
		}
	}
	if reachableFromOutside(s) {
		setDefault(&spec.ExternalTrafficPolicy, corev1.ServiceExternalTrafficPolicyCluster)
	}
	switch spec.Type {
	case corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer:
		setDefaultPtr(&spec.InternalTrafficPolicy, corev1.ServiceInternalTrafficPolicyCluster)
	}
	if spec.Type == corev1.ServiceTypeLoadBalancer {
		setDefaultPtr(&spec.AllocateLoadBalancerNodePorts, true)
		defaultIPMode(s.Status.LoadBalancer.Ingress)
	}
}

func defaultIPMode(ingress []corev1.LoadBalancerIngress) {
	for i := range ingress {
		if ingress[i].IP != "" {
			setDefaultPtr(&ingress[i].IPMode, corev1.LoadBalancerIPModeVIP)
		}
	}
}

// reachableFromOutside reports whether traffic from outside the cluster can reach the Service.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/api/v1/service/util.go ExternallyAccessible.
func reachableFromOutside(s *corev1.Service) bool {
	switch s.Spec.Type {
	case corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeNodePort:
		return true
	case corev1.ServiceTypeClusterIP:
		return len(s.Spec.ExternalIPs) > 0
	}
	return false
}

func isHeadless(s *corev1.Service) bool {
	return len(s.Spec.ClusterIPs) == 1 && s.Spec.ClusterIPs[0] == corev1.ClusterIPNone
}

func hasClusterIP(s *corev1.Service) bool { return s.Spec.Type != corev1.ServiceTypeExternalName }

func hasNodePorts(s *corev1.Service) bool {
	return s.Spec.Type == corev1.ServiceTypeNodePort || s.Spec.Type == corev1.ServiceTypeLoadBalancer
}

// hasHealthPort reports whether load balancers need a separate port to ask a node for local endpoints.
func hasHealthPort(s *corev1.Service) bool {
	return s.Spec.Type == corev1.ServiceTypeLoadBalancer &&
		s.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal
}

func prepareServiceCreate(s *corev1.Service) {
	s.Status = corev1.ServiceStatus{}
	hideInternalTrafficPolicy(s)
}

// hideInternalTrafficPolicy clears the policy of a Service that is only a name.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/registry/core/service/storage/storage.go defaultOnReadInternalTrafficPolicy.
func hideInternalTrafficPolicy(s *corev1.Service) {
	if s.Spec.Type == corev1.ServiceTypeExternalName {
		s.Spec.InternalTrafficPolicy = nil
	}
}

// prepareServiceUpdate keeps the status. If the type changes, it clears what was allocated for the old type and the
// client merely sent back. It keeps what the client changed, for validation to reject.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/registry/core/service/strategy.go dropTypeDependentFields.
func prepareServiceUpdate(s, old *corev1.Service) {
	s.Status = old.Status
	hideInternalTrafficPolicy(s)
	now, was := &s.Spec, &old.Spec
	if hasClusterIP(old) && !hasClusterIP(s) {
		if now.ClusterIP == was.ClusterIP && slices.Equal(now.ClusterIPs, was.ClusterIPs) {
			now.ClusterIP, now.ClusterIPs = "", nil
		}
		if slices.Equal(now.IPFamilies, was.IPFamilies) {
			now.IPFamilies = nil
		}
		if ptr.Equal(now.IPFamilyPolicy, was.IPFamilyPolicy) {
			now.IPFamilyPolicy = nil
		}
	}
	if hasNodePorts(old) && !hasNodePorts(s) && nodePortsOf(old).IsSuperset(nodePortsOf(s)) {
		for i := range now.Ports {
			now.Ports[i].NodePort = 0
		}
	}
	if hasHealthPort(old) && !hasHealthPort(s) && now.HealthCheckNodePort == was.HealthCheckNodePort {
		now.HealthCheckNodePort = 0
	}
	if was.Type == corev1.ServiceTypeLoadBalancer && now.Type != corev1.ServiceTypeLoadBalancer {
		if ptr.Equal(now.AllocateLoadBalancerNodePorts, was.AllocateLoadBalancerNodePorts) {
			now.AllocateLoadBalancerNodePorts = nil
		}
		if ptr.Equal(now.LoadBalancerClass, was.LoadBalancerClass) {
			now.LoadBalancerClass = nil
		}
	}
	if reachableFromOutside(old) && !reachableFromOutside(s) && now.ExternalTrafficPolicy == was.ExternalTrafficPolicy {
		now.ExternalTrafficPolicy = ""
	}
	if now.Type != corev1.ServiceTypeLoadBalancer {
		s.Status.LoadBalancer = corev1.LoadBalancerStatus{}
	}
}

func nodePortsOf(s *corev1.Service) sets.Set[int32] {
	ports := sets.New[int32]()
	for i := range s.Spec.Ports {
		if p := s.Spec.Ports[i].NodePort; p != 0 {
			ports.Insert(p)
		}
	}
	return ports
}

func serviceRow(s *corev1.Service) []cell {
	ip, doc := "", corev1.ServiceSpec{}.SwaggerDoc()
	if len(s.Spec.ClusterIPs) > 0 {
		ip = s.Spec.ClusterIPs[0]
	}
	return []cell{
		column("Type", "string", doc["type"], string(s.Spec.Type)),
		column("Cluster-IP", "string", doc["clusterIP"], orNone(ip)),
		column("External-IP", "string", doc["externalIPs"], externalIP(s)),
		column("Port(s)", "string", doc["ports"], orNone(portList(s.Spec.Ports))),
		wideColumn("Selector", "string", doc["selector"], labels.FormatLabels(s.Spec.Selector)),
	}
}

func externalIP(s *corev1.Service) string {
	external := slices.Clone(s.Spec.ExternalIPs)
	switch s.Spec.Type {
	case corev1.ServiceTypeExternalName:
		return s.Spec.ExternalName
	case corev1.ServiceTypeLoadBalancer:
		all := append(loadBalancerAddresses(s), external...)
		if len(all) == 0 {
			return "<pending>"
		}
		return strings.Join(all, ",")
	default:
		return orNone(strings.Join(external, ","))
	}
}

func loadBalancerAddresses(s *corev1.Service) []string {
	found := sets.New[string]()
	for _, ingress := range s.Status.LoadBalancer.Ingress {
		if a := cmp.Or(ingress.IP, ingress.Hostname); a != "" {
			found.Insert(a)
		}
	}
	return sets.List(found)
}

func portList(ports []corev1.ServicePort) string {
	list := make([]string, len(ports))
	for i := range ports {
		p := &ports[i]
		list[i] = strconv.Itoa(int(p.Port))
		if p.NodePort > 0 {
			list[i] += ":" + strconv.Itoa(int(p.NodePort))
		}
		list[i] += "/" + string(p.Protocol)
	}
	return strings.Join(list, ",")
}
