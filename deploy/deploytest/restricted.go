package deploytest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/client/manifest"
)

// Restricted checks that the Deployment conforms to the restricted pod security standard and to what a careful
// administrator demands, and that the service account has the roles in the manifests.
func Restricted(t *testing.T, objects []manifest.Object) {
	t.Helper()
	var d appsv1.Deployment
	find(t, objects, "Deployment", &d)
	var account corev1.ServiceAccount
	find(t, objects, "ServiceAccount", &account)
	pod := d.Spec.Template.Spec
	wrong := slices.Concat(inPod(d), inContainer(pod.Containers[0], Version(t)))
	if ptr.Deref(account.AutomountServiceAccountToken, true) || pod.ServiceAccountName != account.Name {
		wrong = append(wrong, "every Pod with the service account gets its token, or this Pod has another one")
	}
	for _, text := range append(wrong, inRoles(t, objects, account.Name)...) {
		t.Error(text)
	}
}

// inPod returns what is wrong with a Deployment, except for its container.
func inPod(d appsv1.Deployment) (wrong []string) {
	pod := d.Spec.Template.Spec
	if replicas := ptr.Deref(d.Spec.Replicas, 1); replicas < 2 {
		wrong = append(wrong, fmt.Sprintf("%d replicas: nobody takes over from the leader", replicas))
	}
	seconds := ptr.Deref(pod.TerminationGracePeriodSeconds, corev1.DefaultTerminationGracePeriodSeconds)
	if grace := time.Duration(seconds) * time.Second; grace < 25*time.Second {
		wrong = append(wrong, fmt.Sprintf("%v are less than a stop may take: 10 s for work in flight, and 15 s more",
			grace))
	}
	s := ptr.Deref(pod.SecurityContext, corev1.PodSecurityContext{})
	if !ptr.Deref(s.RunAsNonRoot, false) ||
		ptr.Deref(s.SeccompProfile, corev1.SeccompProfile{}).Type != corev1.SeccompProfileTypeRuntimeDefault {
		wrong = append(wrong, fmt.Sprintf("pod: %+v", s))
	}
	return wrong
}

// inContainer returns what is wrong with the container, whose image must have that version.
func inContainer(c corev1.Container, version string) (wrong []string) {
	s := ptr.Deref(c.SecurityContext, corev1.SecurityContext{})
	capabilities := ptr.Deref(s.Capabilities, corev1.Capabilities{})
	if ptr.Deref(s.AllowPrivilegeEscalation, true) || !ptr.Deref(s.ReadOnlyRootFilesystem, false) ||
		!slices.Equal(capabilities.Drop, []corev1.Capability{"ALL"}) || len(capabilities.Add) > 0 {
		wrong = append(wrong, fmt.Sprintf("container: %+v", s))
	}
	if c.Resources.Limits.Memory().IsZero() || c.Resources.Requests.Cpu().IsZero() ||
		c.Resources.Requests.Memory().IsZero() {
		wrong = append(wrong, fmt.Sprintf("resources: %+v", c.Resources))
	}
	if _, tag, _ := strings.Cut(c.Image, ":"); tag != version || c.ImagePullPolicy != corev1.PullIfNotPresent {
		wrong = append(wrong, fmt.Sprintf("image %s, pulled %s", c.Image, c.ImagePullPolicy))
	}
	for _, p := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe} {
		if p == nil || p.HTTPGet == nil || p.HTTPGet.Scheme != corev1.URISchemeHTTPS || port(c, p) == 0 {
			wrong = append(wrong, fmt.Sprintf("probe %+v", p))
		}
	}
	return wrong
}

// inRoles returns the roles that are not bound to the service account alone, and those that grant a wildcard.
func inRoles(t *testing.T, objects []manifest.Object, account string) (wrong []string) {
	t.Helper()
	roles := map[string]bool{}
	for _, o := range objects {
		if kind := o.GetKind(); kind == "RoleBinding" || kind == "ClusterRoleBinding" {
			var binding rbacv1.ClusterRoleBinding
			find(t, []manifest.Object{o}, kind, &binding)
			roles[binding.RoleRef.Kind+" "+binding.RoleRef.Name] = len(binding.Subjects) == 1 &&
				binding.Subjects[0].Name == account
		}
	}
	for _, o := range objects {
		kind := o.GetKind()
		if kind != "Role" && kind != "ClusterRole" {
			continue
		}
		var role rbacv1.ClusterRole
		if find(t, []manifest.Object{o}, kind, &role); !roles[kind+" "+role.Name] {
			wrong = append(wrong, fmt.Sprintf("%s %s is not bound to %s alone", kind, role.Name, account))
		}
		for _, r := range role.Rules {
			if slices.Contains(slices.Concat(r.Verbs, r.APIGroups, r.Resources), "*") {
				wrong = append(wrong, fmt.Sprintf("%s %s grants %v", kind, role.Name, r))
			}
		}
	}
	return wrong
}

// port returns the port of a probe, or 0 if the container does not name it.
func port(c corev1.Container, p *corev1.Probe) int32 {
	for _, port := range c.Ports {
		if asked := p.HTTPGet.Port; asked.StrVal == port.Name || asked.IntVal == port.ContainerPort {
			return port.ContainerPort
		}
	}
	return 0
}

// Command returns the command line of the Deployment's container and its environment, with the values that the Pod
// would have: like a kubelet, it expands the variables.
func Command(t *testing.T, objects []manifest.Object) (args []string, env map[string]string) {
	t.Helper()
	var d appsv1.Deployment
	find(t, objects, "Deployment", &d)
	c, pairs := d.Spec.Template.Spec.Containers[0], []string(nil)
	env = map[string]string{}
	for _, e := range c.Env {
		if env[e.Name] = e.Value; e.ValueFrom != nil && e.ValueFrom.FieldRef != nil &&
			e.ValueFrom.FieldRef.FieldPath == "metadata.namespace" {
			env[e.Name] = d.Namespace
		}
		pairs = append(pairs, "$("+e.Name+")", env[e.Name])
	}
	for _, arg := range c.Args {
		args = append(args, strings.NewReplacer(pairs...).Replace(arg))
	}
	return args, env
}
