package optest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/flyball-dev/flyball/manager/flags"
	"github.com/flyball-dev/flyball/manager/metrics"
)

// IsRestricted checks that the Deployment conforms to the restricted pod security standard and to what a careful
// administrator would demand, and that its grace period suffices: ten seconds for work in flight, and fifteen for
// everything after that.
func (o Operator) IsRestricted(t *testing.T) {
	t.Helper()
	var d appsv1.Deployment
	o.find(t, "Deployment", &d)
	pod, c := d.Spec.Template.Spec, d.Spec.Template.Spec.Containers[0]
	if *pod.TerminationGracePeriodSeconds < 25 {
		t.Errorf("a stop may take longer than %d s", *pod.TerminationGracePeriodSeconds)
	}
	if s := pod.SecurityContext; !*s.RunAsNonRoot || s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		t.Errorf("pod: %+v", s)
	}
	if s := c.SecurityContext; *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem ||
		!slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) {
		t.Errorf("container: %+v", s)
	}
	if c.Resources.Limits.Memory().IsZero() || c.Resources.Requests.Cpu().IsZero() || c.LivenessProbe == nil ||
		c.ReadinessProbe == nil {
		t.Errorf("container without limits or probes: %+v", c)
	}
	var account corev1.ServiceAccount
	if o.find(t, "ServiceAccount", &account); account.AutomountServiceAccountToken == nil ||
		*account.AutomountServiceAccountToken {
		t.Error("every Pod with the service account gets its token")
	}
	var binding rbacv1.ClusterRoleBinding
	if o.find(t, "ClusterRoleBinding", &binding); binding.RoleRef.Name != o.Name ||
		binding.Subjects[0].Name != account.Name || account.Name != o.Name {
		t.Errorf("bound %+v", binding)
	}
}

// IsServed checks the flags in the command line against the manifests around it: the port, and the Role for the lease.
func (o Operator) IsServed(t *testing.T) {
	t.Helper()
	var d appsv1.Deployment
	o.find(t, "Deployment", &d)
	c := d.Spec.Template.Spec.Containers[0]
	process, set := flags.New(o.Name), pflag.NewFlagSet(o.Name, pflag.ContinueOnError)
	process.AddFlags(set)
	if err := set.Parse(c.Args); err != nil {
		t.Fatal(err)
	}
	var lease rbacv1.Role
	o.find(t, "Role", &lease)
	served := process.ManagerOptions(metrics.New())
	if e := served.LeaderElection; !e.Enabled || e.Namespace != lease.Namespace ||
		!strings.HasSuffix(served.HealthAddr, fmt.Sprintf(":%d", c.Ports[0].ContainerPort)) {
		t.Errorf("served at %s, elected as %+v", served.HealthAddr, e)
	}
}
