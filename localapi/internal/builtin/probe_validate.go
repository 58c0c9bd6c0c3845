package builtin

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

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
