package builtin

import (
	"cmp"
	"iter"
	"regexp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
)

// containersOf yields every container of a pod spec in the order of the API: init, regular, ephemeral.
func containersOf(spec *corev1.PodSpec) iter.Seq[*corev1.Container] {
	return func(yield func(*corev1.Container) bool) {
		for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
			for i := range list {
				if !yield(&list[i]) {
					return
				}
			}
		}
		for i := range spec.EphemeralContainers {
			if !yield((*corev1.Container)(&spec.EphemeralContainers[i].EphemeralContainerCommon)) {
				return
			}
		}
	}
}

// isSidecar reports whether an init container keeps running beside the regular ones.
func isSidecar(c *corev1.Container) bool {
	return c != nil && c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// podQOS returns the quality-of-service class of a new Pod: Guaranteed if every container has limits equal to its
// requests for CPU and memory, BestEffort if no container requests anything, otherwise Burstable.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/apis/core/v1/helper/qos/qos.go ComputePodQOS.
func podQOS(spec *corev1.PodSpec) corev1.PodQOSClass {
	if r := spec.Resources; r != nil && (len(r.Requests) > 0 || len(r.Limits) > 0) {
		return resourcesQOS(r)
	}
	var class corev1.PodQOSClass
	for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			c := resourcesQOS(&list[i].Resources)
			if class != "" && c != class {
				return corev1.PodQOSBurstable
			}
			class = c
		}
	}
	return cmp.Or(class, corev1.PodQOSBestEffort)
}

func resourcesQOS(r *corev1.ResourceRequirements) corev1.PodQOSClass {
	guaranteed, asked := true, false
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		request, limit := r.Requests[name], r.Limits[name]
		if !request.IsZero() || !limit.IsZero() {
			asked = true
		}
		if limit.IsZero() || request.Cmp(limit) != 0 {
			guaranteed = false
		}
	}
	switch {
	case !asked:
		return corev1.PodQOSBestEffort
	case guaranteed:
		return corev1.PodQOSGuaranteed
	default:
		return corev1.PodQOSBurstable
	}
}

// defaultPodTemplate fills in the defaults of a pod template. A template gets fewer of them than a Pod: what only
// defaultPod sets never shows in a Deployment, so adding a default there changes no template hash.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/apis/core/v1/defaults.go SetDefaults_PodSpec and what
// zz_generated.defaults.go calls.
func defaultPodTemplate(t *corev1.PodTemplateSpec) { defaultPodSpec(&t.Spec) }

func defaultPodSpec(spec *corev1.PodSpec) {
	setDefault(&spec.ServiceAccountName, spec.DeprecatedServiceAccount)
	spec.DeprecatedServiceAccount = spec.ServiceAccountName
	setDefault(&spec.DNSPolicy, corev1.DNSClusterFirst)
	setDefault(&spec.RestartPolicy, corev1.RestartPolicyAlways)
	setDefault(&spec.SchedulerName, corev1.DefaultSchedulerName)
	if spec.SecurityContext == nil {
		spec.SecurityContext = &corev1.PodSecurityContext{}
	}
	setDefaultPtr(&spec.TerminationGracePeriodSeconds, int64(corev1.DefaultTerminationGracePeriodSeconds))
	for i := range spec.Volumes {
		defaultVolume(&spec.Volumes[i])
	}
	for c := range containersOf(spec) {
		defaultContainer(c)
	}
	roundToMilli(spec.Overhead)
	if spec.Resources != nil {
		roundToMilli(spec.Resources.Limits)
		roundToMilli(spec.Resources.Requests)
	}
}

// defaultPod fills in the defaults of a Pod, beyond those of any pod spec.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/apis/core/v1/defaults.go SetDefaults_Pod, SetDefaults_PodStatus.
func defaultPod(pod *corev1.Pod) {
	if s := pod.Spec.TerminationGracePeriodSeconds; s != nil && *s < 0 {
		pod.Spec.TerminationGracePeriodSeconds = ptr.To[int64](1)
	}
	defaultPodSpec(&pod.Spec)
	setDefaultPtr(&pod.Spec.EnableServiceLinks, corev1.DefaultEnableServiceLinks)
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if r := &list[i].Resources; r.Limits != nil {
				setDefaultList(&r.Requests, r.Limits)
			}
			if pod.Spec.HostNetwork {
				openHostPorts(list[i].Ports)
			}
		}
	}
	syncPodIPs(&pod.Status)
}

func openHostPorts(ports []corev1.ContainerPort) {
	for i := range ports {
		setDefault(&ports[i].HostPort, ports[i].ContainerPort)
	}
}

// syncPodIPs keeps podIP and podIPs[0] equal. podIP wins, because old kubelets know only that field.
func syncPodIPs(s *corev1.PodStatus) {
	switch {
	case s.PodIP == "" && len(s.PodIPs) > 0:
		s.PodIP = s.PodIPs[0].IP
	case s.PodIP != "" && (len(s.PodIPs) == 0 || s.PodIPs[0].IP != s.PodIP):
		s.PodIPs = []corev1.PodIP{{IP: s.PodIP}}
	}
}

func defaultContainer(c *corev1.Container) {
	setDefault(&c.ImagePullPolicy, pullPolicyFor(c.Image))
	setDefault(&c.TerminationMessagePath, corev1.TerminationMessagePathDefault)
	setDefault(&c.TerminationMessagePolicy, corev1.TerminationMessageReadFile)
	for i := range c.Ports {
		setDefault(&c.Ports[i].Protocol, corev1.ProtocolTCP)
	}
	for i := range c.Env {
		defaultEnvSource(c.Env[i].ValueFrom)
	}
	roundToMilli(c.Resources.Limits)
	roundToMilli(c.Resources.Requests)
	for _, p := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		defaultProbe(p)
	}
	if c.Lifecycle == nil {
		return
	}
	for _, h := range []*corev1.LifecycleHandler{c.Lifecycle.PostStart, c.Lifecycle.PreStop} {
		if h != nil {
			defaultHTTPGet(h.HTTPGet)
		}
	}
}

func defaultEnvSource(s *corev1.EnvVarSource) {
	if s == nil {
		return
	}
	defaultFieldRef(s.FieldRef)
	if s.FileKeyRef != nil {
		setDefaultPtr(&s.FileKeyRef.Optional, false)
	}
}

func defaultProbe(p *corev1.Probe) {
	if p == nil {
		return
	}
	setDefault(&p.TimeoutSeconds, 1)
	setDefault(&p.PeriodSeconds, 10)
	setDefault(&p.SuccessThreshold, 1)
	setDefault(&p.FailureThreshold, 3)
	defaultHTTPGet(p.HTTPGet)
	if p.GRPC != nil {
		setDefaultPtr(&p.GRPC.Service, "")
	}
}

func defaultHTTPGet(a *corev1.HTTPGetAction) {
	if a == nil {
		return
	}
	setDefault(&a.Path, "/")
	setDefault(&a.Scheme, corev1.URISchemeHTTP)
}

func defaultFieldRef(r *corev1.ObjectFieldSelector) {
	if r != nil {
		setDefault(&r.APIVersion, "v1")
	}
}

// defaultVolume defaults the volume sources that are not bound to one vendor's storage.
func defaultVolume(v *corev1.Volume) {
	if ptr.AllPtrFieldsNil(&v.VolumeSource) {
		v.EmptyDir = &corev1.EmptyDirVolumeSource{}
	}
	switch {
	case v.HostPath != nil:
		setDefaultPtr(&v.HostPath.Type, corev1.HostPathUnset)
	case v.Secret != nil:
		setDefaultPtr(&v.Secret.DefaultMode, corev1.SecretVolumeSourceDefaultMode)
	case v.ConfigMap != nil:
		setDefaultPtr(&v.ConfigMap.DefaultMode, corev1.ConfigMapVolumeSourceDefaultMode)
	case v.DownwardAPI != nil:
		setDefaultPtr(&v.DownwardAPI.DefaultMode, corev1.DownwardAPIVolumeSourceDefaultMode)
		defaultDownwardItems(v.DownwardAPI.Items)
	case v.Projected != nil:
		defaultProjected(v.Projected)
	case v.Image != nil:
		setDefault(&v.Image.PullPolicy, pullPolicyFor(v.Image.Reference))
	case v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil:
		defaultClaimSpec(&v.Ephemeral.VolumeClaimTemplate.Spec)
	}
}

func defaultProjected(p *corev1.ProjectedVolumeSource) {
	const hour = 60 * 60
	setDefaultPtr(&p.DefaultMode, corev1.ProjectedVolumeSourceDefaultMode)
	for i := range p.Sources {
		if d := p.Sources[i].DownwardAPI; d != nil {
			defaultDownwardItems(d.Items)
		}
		if t := p.Sources[i].ServiceAccountToken; t != nil {
			setDefaultPtr(&t.ExpirationSeconds, hour)
		}
	}
}

func defaultDownwardItems(items []corev1.DownwardAPIVolumeFile) {
	for i := range items {
		defaultFieldRef(items[i].FieldRef)
	}
}

// imageReference is the grammar of an image reference: an optional domain, a path of lower-case components, an optional
// tag and an optional digest. Submatch 1 is the tag, 2 the digest.
//
// Source: github.com/distribution/reference v0.6.0 regexp.go.
var imageReference = regexp.MustCompile(`^(?:(?:[a-zA-Z0-9]+(?:[.-]+[a-zA-Z0-9]+)*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?/)?` +
	`[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)*` +
	`(?::([\w][\w.-]{0,127}))?(?:@([A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}))?$`)

// pullPolicyFor returns Always for an image whose tag is "latest" or missing, and IfNotPresent for any other image,
// including an invalid reference.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/util/parsers/parsers.go ParseImageName.
func pullPolicyFor(image string) corev1.PullPolicy {
	m := imageReference.FindStringSubmatch(image)
	if m != nil && (m[1] == "latest" || (m[1] == "" && m[2] == "")) {
		return corev1.PullAlways
	}
	return corev1.PullIfNotPresent
}

// roundToMilli rounds quantities up to thousandths, the finest that the API stores.
func roundToMilli(list corev1.ResourceList) {
	for name, q := range list {
		q.RoundUp(resource.Milli)
		list[name] = q
	}
}

// setDefault sets *p to value if it is zero.
func setDefault[T comparable](p *T, value T) {
	var zero T
	if *p == zero {
		*p = value
	}
}

// setDefaultPtr makes *p point to value if it is nil.
func setDefaultPtr[T any](p **T, value T) {
	if *p == nil {
		*p = &value
	}
}
