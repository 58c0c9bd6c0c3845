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
)

// validateContainers validates the regular containers, and then the init and ephemeral ones, whose names must not
// repeat an earlier one.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/apis/core/validation/validation.go validateContainers, validateInitContainers.
func validateContainers(spec *corev1.PodSpec, volumes sets.Set[string], path *field.Path) (errs field.ErrorList) {
	if len(spec.Containers) == 0 {
		return field.ErrorList{field.Required(path.Child("containers"), "")}
	}
	names, hostPorts := sets.New[string](), sets.New[string]()
	for i := range spec.Containers {
		c, p := &spec.Containers[i], path.Child("containers").Index(i)
		errs = append(errs, validateContainer(c, volumes, p)...)
		errs = append(errs, unique(names, c.Name, p.Child("name"))...)
		errs = append(errs, validateProbes(c, p)...)
		errs = append(errs, uniqueHostPorts(hostPorts, c, p)...)
	}
	for i := range spec.InitContainers {
		c, p := &spec.InitContainers[i], path.Child("initContainers").Index(i)
		errs = append(errs, validateContainer(c, volumes, p)...)
		errs = append(errs, unique(names, c.Name, p.Child("name"))...)
		errs = append(errs, uniqueHostPorts(sets.New[string](), c, p)...)
		if isSidecar(c) {
			errs = append(errs, validateProbes(c, p)...)
		} else {
			errs = append(errs, forbidProbes(c, p)...)
		}
	}
	for i := range spec.EphemeralContainers {
		c, p := (*corev1.Container)(&spec.EphemeralContainers[i].EphemeralContainerCommon),
			path.Child("ephemeralContainers").Index(i)
		errs = append(errs, validateContainer(c, volumes, p)...)
		errs = append(errs, unique(names, c.Name, p.Child("name"))...)
	}
	return errs
}

// validateContainer validates what all kinds of containers share.
func validateContainer(c *corev1.Container, volumes sets.Set[string], path *field.Path) (errs field.ErrorList) {
	errs = append(errs, required(c.Name, path.Child("name"), validation.IsDNS1123Label)...)
	if c.Image == "" {
		errs = append(errs, field.Required(path.Child("image"), ""))
	}
	errs = append(errs, oneOf(path.Child("terminationMessagePolicy"), c.TerminationMessagePolicy,
		corev1.TerminationMessageReadFile, corev1.TerminationMessageFallbackToLogsOnError)...)
	errs = append(errs, validateContainerPorts(c.Ports, path.Child("ports"))...)
	errs = append(errs, validateEnv(c.Env, path.Child("env"))...)
	errs = append(errs, validateMounts(c.VolumeMounts, volumes, path.Child("volumeMounts"))...)
	errs = append(errs, oneOf(path.Child("imagePullPolicy"), c.ImagePullPolicy,
		corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever)...)
	return append(errs, validateResources(&c.Resources, path.Child("resources"))...)
}

// unique reports a value that was seen before, and adds it to seen.
func unique[T comparable](seen sets.Set[T], value T, path *field.Path) field.ErrorList {
	if seen.Has(value) {
		return field.ErrorList{field.Duplicate(path, value)}
	}
	seen.Insert(value)
	return nil
}

func uniqueHostPorts(seen sets.Set[string], c *corev1.Container, path *field.Path) (errs field.ErrorList) {
	for i := range c.Ports {
		port := &c.Ports[i]
		if port.HostPort == 0 {
			continue
		}
		key := fmt.Sprintf("%s/%s/%d", port.Protocol, port.HostIP, port.HostPort)
		errs = append(errs, unique(seen, key, path.Child("ports").Index(i).Child("hostPort"))...)
	}
	return errs
}

func validateContainerPorts(ports []corev1.ContainerPort, path *field.Path) (errs field.ErrorList) {
	names := sets.New[string]()
	for i := range ports {
		port, p := &ports[i], path.Index(i)
		if port.Name != "" {
			if msgs := validation.IsValidPortName(port.Name); len(msgs) > 0 {
				errs = append(errs, invalid(p.Child("name"), port.Name, msgs)...)
			} else {
				errs = append(errs, unique(names, port.Name, p.Child("name"))...)
			}
		}
		if port.ContainerPort == 0 {
			errs = append(errs, field.Required(p.Child("containerPort"), ""))
		} else {
			errs = append(errs, invalid(p.Child("containerPort"), port.ContainerPort,
				validation.IsValidPortNum(int(port.ContainerPort)))...)
		}
		if port.HostPort != 0 {
			errs = append(errs,
				invalid(p.Child("hostPort"), port.HostPort, validation.IsValidPortNum(int(port.HostPort)))...)
		}
		errs = append(errs, validateProtocol(port.Protocol, p.Child("protocol"))...)
	}
	return errs
}

func validateProtocol(protocol corev1.Protocol, path *field.Path) field.ErrorList {
	return oneOf(path, protocol, corev1.ProtocolSCTP, corev1.ProtocolTCP, corev1.ProtocolUDP)
}

// validateEnv checks a variable's name, and that it has at most one source.
func validateEnv(vars []corev1.EnvVar, path *field.Path) (errs field.ErrorList) {
	for i := range vars {
		v, p := &vars[i], path.Index(i)
		errs = append(errs, required(v.Name, p.Child("name"), validation.IsRelaxedEnvVarName)...)
		if v.ValueFrom != nil {
			errs = append(errs, validateEnvSource(v, p.Child("valueFrom"))...)
		}
	}
	return errs
}

func validateEnvSource(v *corev1.EnvVar, path *field.Path) (errs field.ErrorList) {
	s := v.ValueFrom
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
		errs = validateEnvField(s.FieldRef, path.Child("fieldRef"))
	}
	switch {
	case sources == 0:
		errs = append(errs, field.Invalid(path, "",
			"must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"))
	case v.Value != "":
		errs = append(errs, field.Invalid(path, "", "may not be specified when `value` is not empty"))
	case sources > 1:
		errs = append(errs, field.Invalid(path, "", "may not have more than one field specified at a time"))
	}
	return errs
}

// envFields are the fields of the pod that a variable may refer to. selectableFields are the other fields that have a
// name there.
var (
	envFields = sets.New("metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName",
		"spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs")
	selectableFields = sets.New("metadata.annotations", "metadata.labels", "spec.restartPolicy", "spec.schedulerName",
		"status.phase")
)

// Source: k8s.io/kubernetes v1.37.1 pkg/apis/core/validation/validation.go validateObjectFieldSelector;
// pkg/apis/core/pods/helpers.go ConvertDownwardAPIFieldLabel.
func validateEnvField(ref *corev1.ObjectFieldSelector, path *field.Path) field.ErrorList {
	p, name := path.Child("fieldPath"), ref.FieldPath
	base, subscript, _ := strings.Cut(name, "['")
	switch {
	case ref.APIVersion == "":
		return field.ErrorList{field.Required(path.Child("apiVersion"), "")}
	case name == "":
		return field.ErrorList{field.Required(p, "")}
	case strings.HasSuffix(subscript, "']") && (base == "metadata.annotations" || base == "metadata.labels"):
		return nil
	case envFields.Has(name):
		return nil
	case selectableFields.Has(name):
		return field.ErrorList{field.NotSupported(p, name, sets.List(envFields))}
	}
	return field.ErrorList{field.Invalid(p, name, "error converting fieldPath: field label not supported: "+name)}
}

func validateMounts(mounts []corev1.VolumeMount, volumes sets.Set[string], path *field.Path) (errs field.ErrorList) {
	paths := sets.New[string]()
	for i := range mounts {
		m, p := &mounts[i], path.Index(i)
		if m.Name == "" {
			errs = append(errs, field.Required(p.Child("name"), ""))
		}
		if !volumes.Has(m.Name) {
			errs = append(errs, field.NotFound(p.Child("name"), m.Name))
		}
		if m.MountPath == "" {
			errs = append(errs, field.Required(p.Child("mountPath"), ""))
		}
		if paths.Has(m.MountPath) {
			errs = append(errs, field.Invalid(p.Child("mountPath"), m.MountPath, "must be unique"))
		}
		paths.Insert(m.MountPath)
	}
	return errs
}

// validateResources validates names and amounts, and that no request is above its limit.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/apis/core/validation/validation.go validateResourceRequirements.
func validateResources(r *corev1.ResourceRequirements, path *field.Path) (errs field.ErrorList) {
	for _, name := range sortedKeys(r.Limits) {
		errs = append(errs, validateResource(name, r.Limits[name], path.Child("limits").Key(string(name)))...)
	}
	for _, name := range sortedKeys(r.Requests) {
		request := r.Requests[name]
		errs = append(errs, validateResource(name, request, path.Child("requests").Key(string(name)))...)
		limit, limited := r.Limits[name]
		switch {
		case !limited && !overcommits(name):
			errs = append(errs,
				field.Required(path.Child("limits"), "Limit must be set for non overcommitable resources"))
		case limited && !overcommits(name) && request.Cmp(limit) != 0:
			errs = append(errs, field.Invalid(path.Child("requests"), request.String(),
				fmt.Sprintf("must be equal to %s limit of %s", name, limit.String())))
		case limited && request.Cmp(limit) > 0:
			errs = append(errs, field.Invalid(path.Child("requests"), request.String(),
				fmt.Sprintf("must be less than or equal to %s limit of %s", name, limit.String())))
		}
	}
	return errs
}

func validateResource(name corev1.ResourceName, q resource.Quantity, path *field.Path) field.ErrorList {
	errs := validateContainerResourceName(name, path)
	if q.Sign() < 0 {
		errs = append(errs, field.Invalid(path, q.String(), apivalidation.IsNegativeErrorMsg))
	}
	if !overcommits(name) && q.MilliValue()%1000 != 0 {
		errs = append(errs, field.Invalid(path, q, "must be an integer"))
	}
	return errs
}

func isContainerResource(name corev1.ResourceName) bool {
	switch name {
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		return true
	}
	return strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

// overcommits reports whether the requests for a resource may exceed what a node has. They may for what Kubernetes
// itself measures, but not for whole devices and huge pages.
func overcommits(name corev1.ResourceName) bool {
	return isNativeResource(name) && !strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

func portNumOrName(port intstr.IntOrString, path *field.Path) field.ErrorList {
	if port.Type == intstr.Int {
		return invalid(path, port.IntValue(), validation.IsValidPortNum(port.IntValue()))
	}
	return invalid(path, port.StrVal, validation.IsValidPortName(port.StrVal))
}

// validateProbes validates a container's probes and lifecycle hooks.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/apis/core/validation/validation.go validateProbe, validateHandler.
func validateProbes(c *corev1.Container, path *field.Path) (errs field.ErrorList) {
	if c.Lifecycle != nil {
		errs = append(errs, validateHook(c.Lifecycle.PostStart, path.Child("lifecycle", "postStart"))...)
		errs = append(errs, validateHook(c.Lifecycle.PreStop, path.Child("lifecycle", "preStop"))...)
	}
	errs = append(errs, validateProbe(c.LivenessProbe, path.Child("livenessProbe"))...)
	errs = append(errs, onlyOneSuccess(c.LivenessProbe, path.Child("livenessProbe"))...)
	errs = append(errs, validateProbe(c.ReadinessProbe, path.Child("readinessProbe"))...)
	if p := c.ReadinessProbe; p != nil && p.TerminationGracePeriodSeconds != nil {
		errs = append(errs, field.Invalid(path.Child("readinessProbe", "terminationGracePeriodSeconds"),
			*p.TerminationGracePeriodSeconds, "must not be set for readinessProbes"))
	}
	errs = append(errs, validateProbe(c.StartupProbe, path.Child("startupProbe"))...)
	return append(errs, onlyOneSuccess(c.StartupProbe, path.Child("startupProbe"))...)
}

// forbidProbes rejects probes and hooks on an init container that runs to its end.
func forbidProbes(c *corev1.Container, path *field.Path) (errs field.ErrorList) {
	const reason = "may not be set for init containers without restartPolicy=Always"
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"lifecycle", c.Lifecycle != nil},
		{"livenessProbe", c.LivenessProbe != nil},
		{"readinessProbe", c.ReadinessProbe != nil},
		{"startupProbe", c.StartupProbe != nil},
	} {
		if f.set {
			errs = append(errs, field.Forbidden(path.Child(f.name), reason))
		}
	}
	return errs
}

func onlyOneSuccess(p *corev1.Probe, path *field.Path) field.ErrorList {
	if p == nil || p.SuccessThreshold == 1 {
		return nil
	}
	return field.ErrorList{field.Invalid(path.Child("successThreshold"), p.SuccessThreshold, "must be 1")}
}

func validateProbe(p *corev1.Probe, path *field.Path) field.ErrorList {
	if p == nil {
		return nil
	}
	errs := validateHandler(handler{exec: p.Exec, http: p.HTTPGet, tcp: p.TCPSocket, grpc: p.GRPC}, path)
	errs = append(errs, nonnegatives(p, path, "initialDelaySeconds", "timeoutSeconds", "periodSeconds",
		"successThreshold", "failureThreshold")...)
	if s := p.TerminationGracePeriodSeconds; s != nil && *s <= 0 {
		errs = append(errs, field.Invalid(path.Child("terminationGracePeriodSeconds"), *s, "must be greater than 0"))
	}
	return errs
}

func validateHook(h *corev1.LifecycleHandler, path *field.Path) field.ErrorList {
	if h == nil {
		return nil
	}
	return validateHandler(handler{exec: h.Exec, http: h.HTTPGet, tcp: h.TCPSocket, sleep: h.Sleep}, path)
}

// handler is the action of a probe or of a lifecycle hook. Exactly one field must be set.
type handler struct {
	exec  *corev1.ExecAction
	http  *corev1.HTTPGetAction
	tcp   *corev1.TCPSocketAction
	grpc  *corev1.GRPCAction
	sleep *corev1.SleepAction
}

func validateHandler(h handler, path *field.Path) (errs field.ErrorList) {
	found := false
	try := func(set bool, name string, judge func(*field.Path) field.ErrorList) {
		switch {
		case !set:
		case found:
			errs = append(errs, field.Forbidden(path.Child(name), "may not specify more than 1 handler type"))
		default:
			found = true
			errs = append(errs, judge(path.Child(name))...)
		}
	}
	try(h.exec != nil, "exec", func(p *field.Path) field.ErrorList {
		if len(h.exec.Command) == 0 {
			return field.ErrorList{field.Required(p.Child("command"), "")}
		}
		return nil
	})
	try(h.http != nil, "httpGet", func(p *field.Path) field.ErrorList { return validateHTTPGet(h.http, p) })
	try(h.tcp != nil, "tcpSocket",
		func(p *field.Path) field.ErrorList { return portNumOrName(h.tcp.Port, p.Child("port")) })
	try(h.grpc != nil, "grpc", func(p *field.Path) field.ErrorList {
		return portNumOrName(intstr.FromInt32(h.grpc.Port), p.Child("port"))
	})
	try(h.sleep != nil, "sleep", func(*field.Path) field.ErrorList { return nil })
	if !found {
		errs = append(errs, field.Required(path, "must specify a handler type"))
	}
	return errs
}

func validateHTTPGet(a *corev1.HTTPGetAction, path *field.Path) (errs field.ErrorList) {
	if a.Path == "" {
		errs = append(errs, field.Required(path.Child("path"), ""))
	}
	errs = append(errs, portNumOrName(a.Port, path.Child("port"))...)
	if a.Scheme != corev1.URISchemeHTTP && a.Scheme != corev1.URISchemeHTTPS {
		errs = append(errs, field.NotSupported(path.Child("scheme"), a.Scheme,
			[]corev1.URIScheme{corev1.URISchemeHTTP, corev1.URISchemeHTTPS}))
	}
	return errs
}
