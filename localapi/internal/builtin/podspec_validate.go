package builtin

import (
	"math"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/localapi/internal/verify"
)

// validatePodSpec validates the spec of a Pod or of a pod template.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/apis/core/validation/validation.go ValidatePodSpec.
func validatePodSpec(f verify.Field, spec *corev1.PodSpec) {
	f.Require("terminationGracePeriodSeconds", spec.TerminationGracePeriodSeconds != nil, "")
	validateContainers(f, spec, validateVolumes(f, spec.Volumes))
	verify.OneOf(f, "restartPolicy", spec.RestartPolicy, corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure,
		corev1.RestartPolicyNever)
	verify.OneOf(f, "dnsPolicy", spec.DNSPolicy, corev1.DNSClusterFirstWithHostNet, corev1.DNSClusterFirst,
		corev1.DNSDefault, corev1.DNSNone)
	f.Labels("nodeSelector", spec.NodeSelector)
	if spec.SecurityContext != nil {
		validateSysctls(f, spec)
	}
	validateGates(f, spec)
	f.MatchIfSet("serviceAccountName", spec.ServiceAccountName, validation.IsDNS1123Subdomain)
	f.MatchIfSet("nodeName", spec.NodeName, validation.IsDNS1123Subdomain)
	deadline := ptr.Deref(spec.ActiveDeadlineSeconds, 1)
	f.Reject("activeDeadlineSeconds", deadline < 1 || deadline > math.MaxInt32, deadline,
		validation.InclusiveRangeError(1, math.MaxInt32))
	f.MatchIfSet("hostname", spec.Hostname, validation.IsDNS1123Label)
	f.MatchIfSet("subdomain", spec.Subdomain, validation.IsDNS1123Label)
	verify.Each(f, "tolerations", spec.Tolerations, validateToleration)
	f.MatchIfSet("priorityClassName", spec.PriorityClassName, validation.IsDNS1123Subdomain)
	f.MatchIfSet("runtimeClassName", ptr.Deref(spec.RuntimeClassName, ""), validation.IsDNS1123Subdomain)
	validateResources(f.Child("overhead"), &corev1.ResourceRequirements{Limits: spec.Overhead})
	if p := spec.PreemptionPolicy; p != nil {
		verify.OneOf(f, "preemptionPolicy", *p, corev1.PreemptLowerPriority, corev1.PreemptNever)
	}
}

// sysctlName is the name of a parameter of the kernel.
var sysctlName = regexp.MustCompile(`^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$`)

const maxSysctlName = 253

// validateSysctls also refuses the parameters of a namespace of the kernel that the pod shares with its node.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/apis/core/validation/validation.go validateSysctls,
// k8s.io/component-helpers v0.37.2 node/util/sysctl/namespace.go.
func validateSysctls(f verify.Field, spec *corev1.PodSpec) {
	seen := sets.New[string]()
	verify.Each(f, "securityContext.sysctls", spec.SecurityContext.Sysctls, func(f verify.Field, s *corev1.Sysctl) {
		switch {
		case s.Name == "":
			f.Require("name", false, "")
		case len(s.Name) > maxSysctlName, !sysctlName.MatchString(s.Name):
			f.Rejectf("name", true, s.Name, "must have at most %d characters and match regex %s", maxSysctlName,
				sysctlName)
		default:
			verify.Unique(f, "name", seen, s.Name)
		}
		name := s.Name
		if at := strings.IndexAny(name, "./"); at >= 0 && name[at] == '/' {
			name = strings.NewReplacer("/", ".", ".", "/").Replace(name)
		}
		switch {
		case spec.HostNetwork && strings.HasPrefix(name, "net."):
			f.Reject("name", true, s.Name, "may not be specified when 'hostNetwork' is true")
		case spec.HostIPC && (strings.HasPrefix(name, "fs.mqueue.") || ipcSysctls.Has(name)):
			f.Reject("name", true, s.Name, "may not be specified when 'hostIPC' is true")
		}
	})
}

// ipcSysctls are the parameters of the kernel's namespace for IPC.
var ipcSysctls = sets.New("kernel.sem", "kernel.shmall", "kernel.shmmax", "kernel.shmmni", "kernel.shm_rmid_forced",
	"kernel.shm", "kernel.msgmax", "kernel.msgmnb", "kernel.msgmni", "kernel.msg")

func validateGates(f verify.Field, spec *corev1.PodSpec) {
	verify.Each(f, "readinessGates", spec.ReadinessGates, func(f verify.Field, gate *corev1.PodReadinessGate) {
		f.Match("conditionType", string(gate.ConditionType), validation.IsQualifiedName)
	})
	seen := sets.New[string]()
	verify.Each(f, "schedulingGates", spec.SchedulingGates, func(f verify.Field, gate *corev1.PodSchedulingGate) {
		f.Match("", gate.Name, validation.IsQualifiedName)
		verify.Unique(f, "", seen, gate.Name)
	})
}

// validateVolumes also returns the names of the valid volumes, which containers may mount.
func validateVolumes(f verify.Field, volumes []corev1.Volume) sets.Set[string] {
	names := sets.New[string]()
	verify.Each(f, "volumes", volumes, func(f verify.Field, v *corev1.Volume) {
		if f.Passes(func(f verify.Field) {
			f.RequireMatch("name", v.Name, validation.IsDNS1123Label)
			f.Duplicate("name", names.Has(v.Name), v.Name)
			validateVolumeSource(f, v)
		}) {
			names.Insert(v.Name)
		}
	})
	return names
}

// validateProjected checks the certificates that pods ask for.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/apis/core/validation/validation.go validateProjectionSources.
func validateProjected(f verify.Field, v *corev1.VolumeProjection) {
	c := v.PodCertificate
	if c == nil {
		return
	}
	f = f.Child("podCertificate")
	validateSigner(f, c.SignerName)
	verify.OneOf(f, "keyType", c.KeyType, "RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519")
	most := longestLife(c.SignerName)
	life := ptr.Deref(c.MaxExpirationSeconds, most)
	f.Rejectf("maxExpirationSeconds", life < shortestLife, life,
		"if provided, maxExpirationSeconds must be >= %d", shortestLife)
	f.Rejectf("maxExpirationSeconds", life > most, life, "if provided, maxExpirationSeconds must be <= %d", most)
	f.Require("", c.CredentialBundlePath != "" || c.KeyPath != "" || c.CertificateChainPath != "",
		"specify at least one of credentialBundlePath, keyPath, and certificateChainPath")
}

// validateVolumeSource checks the one field that each common source requires.
func validateVolumeSource(f verify.Field, v *corev1.Volume) {
	switch {
	case v.HostPath != nil:
		f.Require("hostPath.path", v.HostPath.Path != "", "")
	case v.Secret != nil:
		f.Require("secret.secretName", v.Secret.SecretName != "", "")
	case v.ConfigMap != nil:
		f.Require("configMap.name", v.ConfigMap.Name != "", "")
	case v.PersistentVolumeClaim != nil:
		f.Require("persistentVolumeClaim.claimName", v.PersistentVolumeClaim.ClaimName != "", "")
	case v.CSI != nil:
		f.Require("csi.driver", v.CSI.Driver != "", "")
	case v.NFS != nil:
		f.Require("nfs.server", v.NFS.Server != "", "")
		f.Require("nfs.path", v.NFS.Path != "", "")
	case v.Projected != nil:
		verify.Each(f, "projected.sources", v.Projected.Sources, validateProjected)
	}
}

// validateToleration validates a toleration by itself.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/apis/core/validation/validation.go ValidateTolerations.
func validateToleration(f verify.Field, t *corev1.Toleration) {
	if t.Key != "" {
		f.Add(metavalidation.ValidateLabelName(t.Key, f.Path("key"))...)
	} else {
		f.Reject("operator", t.Operator != corev1.TolerationOpExists, t.Operator,
			"operator must be Exists when `key` is empty, which means \"match all values and all keys\"")
	}
	f.Reject("effect", t.TolerationSeconds != nil && t.Effect != corev1.TaintEffectNoExecute, t.Effect,
		"effect must be 'NoExecute' when `tolerationSeconds` is set")
	switch t.Operator {
	case corev1.TolerationOpEqual, "":
		f.Match("operator", t.Value, validation.IsValidLabelValue)
	case corev1.TolerationOpExists:
		f.Reject("operator", t.Value != "", t.Value, "value must be empty when `operator` is 'Exists'")
	default:
		verify.Supported(f, "operator", t.Operator, corev1.TolerationOpEqual, corev1.TolerationOpExists)
	}
	if t.Effect != "" {
		validateTaintEffect(f, t.Effect)
	}
}

func validateTaintEffect(f verify.Field, effect corev1.TaintEffect) {
	verify.OneOf(f, "effect", effect, corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule,
		corev1.TaintEffectNoExecute)
}
