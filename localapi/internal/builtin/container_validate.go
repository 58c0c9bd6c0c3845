package builtin

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flyball-dev/flyball/localapi/internal/verify"
)

// validateContainers validates the regular containers, and then the init and ephemeral ones, whose names must not
// repeat an earlier one.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/apis/core/validation/validation.go validateContainers, validateInitContainers.
func validateContainers(f verify.Field, spec *corev1.PodSpec, volumes sets.Set[string]) {
	if len(spec.Containers) == 0 {
		f.Require("containers", false, "")
		return
	}
	names, hostPorts := sets.New[string](), sets.New[string]()
	verify.Each(f, "containers", spec.Containers, func(f verify.Field, c *corev1.Container) {
		validateContainer(f, c, volumes)
		verify.Unique(f, "name", names, c.Name)
		validateProbes(f, c)
		uniqueHostPorts(f, c, hostPorts)
	})
	verify.Each(f, "initContainers", spec.InitContainers, func(f verify.Field, c *corev1.Container) {
		validateContainer(f, c, volumes)
		verify.Unique(f, "name", names, c.Name)
		uniqueHostPorts(f, c, sets.New[string]())
		if isSidecar(c) {
			validateProbes(f, c)
		} else {
			forbidProbes(f, c)
		}
	})
	verify.Each(f, "ephemeralContainers", spec.EphemeralContainers, func(f verify.Field, c *corev1.EphemeralContainer) {
		validateContainer(f, (*corev1.Container)(&c.EphemeralContainerCommon), volumes)
		verify.Unique(f, "name", names, c.Name)
	})
}

// validateContainer validates what all kinds of containers share.
func validateContainer(f verify.Field, c *corev1.Container, volumes sets.Set[string]) {
	f.RequireMatch("name", c.Name, validation.IsDNS1123Label)
	f.Require("image", c.Image != "", "")
	verify.OneOf(f, "terminationMessagePolicy", c.TerminationMessagePolicy, corev1.TerminationMessageReadFile,
		corev1.TerminationMessageFallbackToLogsOnError)
	validateContainerPorts(f, c.Ports)
	verify.Each(f, "env", c.Env, validateEnv)
	validateMounts(f, c.VolumeMounts, volumes)
	verify.OneOf(f, "imagePullPolicy", c.ImagePullPolicy, corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever)
	validateResources(f.Child("resources"), &c.Resources)
}

func uniqueHostPorts(f verify.Field, c *corev1.Container, seen sets.Set[string]) {
	verify.Each(f, "ports", c.Ports, func(f verify.Field, p *corev1.ContainerPort) {
		if p.HostPort != 0 {
			verify.Unique(f, "hostPort", seen, fmt.Sprintf("%s/%s/%d", p.Protocol, p.HostIP, p.HostPort))
		}
	})
}

func validateContainerPorts(f verify.Field, ports []corev1.ContainerPort) {
	names := sets.New[string]()
	verify.Each(f, "ports", ports, func(f verify.Field, p *corev1.ContainerPort) {
		if p.Name != "" && f.Passes(func(f verify.Field) { f.Match("name", p.Name, validation.IsValidPortName) }) {
			verify.Unique(f, "name", names, p.Name)
		}
		if f.Require("containerPort", p.ContainerPort != 0, ""); p.ContainerPort != 0 {
			f.Port("containerPort", p.ContainerPort)
		}
		if p.HostPort != 0 {
			f.Port("hostPort", p.HostPort)
		}
		validateProtocol(f, p.Protocol)
	})
}

func validateProtocol(f verify.Field, protocol corev1.Protocol) {
	verify.OneOf(f, "protocol", protocol, corev1.ProtocolSCTP, corev1.ProtocolTCP, corev1.ProtocolUDP)
}

// validateEnv checks a variable's name, and that it has at most one source.
func validateEnv(f verify.Field, v *corev1.EnvVar) {
	f.RequireMatch("name", v.Name, validation.IsRelaxedEnvVarName)
	s := v.ValueFrom
	if s == nil {
		return
	}
	sources := 0
	for _, set := range []bool{
		s.FieldRef != nil, s.ResourceFieldRef != nil, s.ConfigMapKeyRef != nil,
		s.SecretKeyRef != nil, s.FileKeyRef != nil,
	} {
		if set {
			sources++
		}
	}
	if s.FieldRef != nil {
		validateEnvField(f.Child("valueFrom.fieldRef"), s.FieldRef)
	}
	switch {
	case sources == 0:
		f.Reject("valueFrom", true, "",
			"must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`")
	case v.Value != "":
		f.Reject("valueFrom", true, "", "may not be specified when `value` is not empty")
	case sources > 1:
		f.Reject("valueFrom", true, "", "may not have more than one field specified at a time")
	}
}

// envFields are the fields of the pod that a variable may refer to. namedFields are the other fields that have a
// name there.
var (
	envFields = sets.New("metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName",
		"spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs")
	namedFields = sets.New("metadata.annotations", "metadata.labels", "spec.restartPolicy", "spec.schedulerName",
		"status.phase")
)

// Source: k8s.io/kubernetes v1.37.2 pkg/apis/core/validation/validation.go validateObjectFieldSelector;
// pkg/apis/core/pods/helpers.go ConvertDownwardAPIFieldLabel.
func validateEnvField(f verify.Field, ref *corev1.ObjectFieldSelector) {
	name := ref.FieldPath
	base, subscript, _ := strings.Cut(name, "['")
	switch {
	case ref.APIVersion == "":
		f.Require("apiVersion", false, "")
	case name == "":
		f.Require("fieldPath", false, "")
	case strings.HasSuffix(subscript, "']") && (base == "metadata.annotations" || base == "metadata.labels"):
	case envFields.Has(name):
	case namedFields.Has(name):
		verify.Supported(f, "fieldPath", name, sets.List(envFields)...)
	default:
		f.Reject("fieldPath", true, name, "error converting fieldPath: field label not supported: "+name)
	}
}

func validateMounts(f verify.Field, mounts []corev1.VolumeMount, volumes sets.Set[string]) {
	paths := sets.New[string]()
	verify.Each(f, "volumeMounts", mounts, func(f verify.Field, m *corev1.VolumeMount) {
		f.Require("name", m.Name != "", "")
		if !volumes.Has(m.Name) {
			f.Add(field.NotFound(f.Path("name"), m.Name))
		}
		f.Require("mountPath", m.MountPath != "", "")
		f.Reject("mountPath", paths.Has(m.MountPath), m.MountPath, "must be unique")
		paths.Insert(m.MountPath)
	})
}

// validateResources validates names and amounts, and that no request is above its limit.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/apis/core/validation/validation.go validateResourceRequirements.
func validateResources(f verify.Field, r *corev1.ResourceRequirements) {
	for _, name := range sortedKeys(r.Limits) {
		validateAmount(f, "limits", name, r.Limits[name])
	}
	for _, name := range sortedKeys(r.Requests) {
		request := r.Requests[name]
		validateAmount(f, "requests", name, request)
		switch limit, limited := r.Limits[name]; {
		case !limited:
			f.Require("limits", overcommits(name), "Limit must be set for non overcommitable resources")
		case !overcommits(name) && request.Cmp(limit) != 0:
			f.Rejectf("requests", true, request.String(), "must be equal to %s limit of %s", name, limit.String())
		case request.Cmp(limit) > 0:
			f.Rejectf("requests", true, request.String(), "must be less than or equal to %s limit of %s", name,
				limit.String())
		}
	}
}

// validateAmount validates one entry of the list of the given name.
func validateAmount(f verify.Field, list string, name corev1.ResourceName, q resource.Quantity) {
	f = f.Child(list).Key(string(name))
	validateContainerResourceName(f, name)
	f.Reject("", q.Sign() < 0, q.String(), apivalidation.IsNegativeErrorMsg)
	f.Reject("", !overcommits(name) && q.MilliValue()%1000 != 0, q, "must be an integer")
}

func isContainerResource(name corev1.ResourceName) bool {
	switch name {
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		return true
	}
	return isHugePages(name)
}

func isHugePages(name corev1.ResourceName) bool {
	return strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

// overcommits reports whether the requests for a resource may exceed what a node has. They may for what Kubernetes
// itself measures, but not for whole devices and huge pages.
func overcommits(name corev1.ResourceName) bool {
	return isNativeResource(name) && !isHugePages(name)
}

func portNumOrName(f verify.Field, name string, port intstr.IntOrString) {
	if port.Type == intstr.Int {
		f.Port(name, port.IntVal)
	} else {
		f.Match(name, port.StrVal, validation.IsValidPortName)
	}
}

// validateProbes validates a container's probes and lifecycle hooks.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/apis/core/validation/validation.go validateProbe, validateHandler.
func validateProbes(f verify.Field, c *corev1.Container) {
	if c.Lifecycle != nil {
		validateHook(f.Child("lifecycle.postStart"), c.Lifecycle.PostStart)
		validateHook(f.Child("lifecycle.preStop"), c.Lifecycle.PreStop)
	}
	validateProbe(f.Child("livenessProbe"), c.LivenessProbe)
	onlyOneSuccess(f.Child("livenessProbe"), c.LivenessProbe)
	validateProbe(f.Child("readinessProbe"), c.ReadinessProbe)
	if p := c.ReadinessProbe; p != nil {
		f.Reject("readinessProbe.terminationGracePeriodSeconds", p.TerminationGracePeriodSeconds != nil,
			p.TerminationGracePeriodSeconds, "must not be set for readinessProbes")
	}
	validateProbe(f.Child("startupProbe"), c.StartupProbe)
	onlyOneSuccess(f.Child("startupProbe"), c.StartupProbe)
}

// forbidProbes rejects probes and hooks on an init container that runs to its end.
func forbidProbes(f verify.Field, c *corev1.Container) {
	const reason = "may not be set for init containers without restartPolicy=Always"
	f.Forbid("lifecycle", c.Lifecycle != nil, reason)
	f.Forbid("livenessProbe", c.LivenessProbe != nil, reason)
	f.Forbid("readinessProbe", c.ReadinessProbe != nil, reason)
	f.Forbid("startupProbe", c.StartupProbe != nil, reason)
}

func onlyOneSuccess(f verify.Field, p *corev1.Probe) {
	if p != nil {
		f.Reject("successThreshold", p.SuccessThreshold != 1, p.SuccessThreshold, "must be 1")
	}
}

func validateProbe(f verify.Field, p *corev1.Probe) {
	if p == nil {
		return
	}
	validateHandler(f, handler{exec: p.Exec, http: p.HTTPGet, tcp: p.TCPSocket, grpc: p.GRPC})
	nonnegatives(f, p, "initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
	s := p.TerminationGracePeriodSeconds
	f.Reject("terminationGracePeriodSeconds", s != nil && *s <= 0, s, "must be greater than 0")
}

func validateHook(f verify.Field, h *corev1.LifecycleHandler) {
	if h != nil {
		validateHandler(f, handler{exec: h.Exec, http: h.HTTPGet, tcp: h.TCPSocket, sleep: h.Sleep})
	}
}

// handler is the action of a probe or of a lifecycle hook. Exactly one field must be set.
type handler struct {
	exec  *corev1.ExecAction
	http  *corev1.HTTPGetAction
	tcp   *corev1.TCPSocketAction
	grpc  *corev1.GRPCAction
	sleep *corev1.SleepAction
}

func validateHandler(f verify.Field, h handler) {
	found := false
	try := func(name string, set bool, rules func(verify.Field)) {
		f.Forbid(name, set && found, "may not specify more than 1 handler type")
		if set && !found {
			rules(f.Child(name))
		}
		found = found || set
	}
	try("exec", h.exec != nil, func(f verify.Field) { f.Require("command", len(h.exec.Command) > 0, "") })
	try("httpGet", h.http != nil, func(f verify.Field) {
		f.Require("path", h.http.Path != "", "")
		portNumOrName(f, "port", h.http.Port)
		verify.Supported(f, "scheme", h.http.Scheme, corev1.URISchemeHTTP, corev1.URISchemeHTTPS)
	})
	try("tcpSocket", h.tcp != nil, func(f verify.Field) { portNumOrName(f, "port", h.tcp.Port) })
	try("grpc", h.grpc != nil, func(f verify.Field) { f.Port("port", h.grpc.Port) })
	try("sleep", h.sleep != nil, func(verify.Field) {})
	f.Require("", found, "must specify a handler type")
}
