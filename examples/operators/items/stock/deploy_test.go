package stock_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// manifest reads the first object of a kind out of manager.yaml.
func manifest(t *testing.T, kind string, into any) {
	t.Helper()
	text, err := os.ReadFile("../deploy/manager.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		if strings.Contains(document, "\nkind: "+kind+"\n") {
			if err := yaml.UnmarshalStrict([]byte(document), into); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatalf("manager.yaml has no %s", kind)
}

// TestManifestIsRestricted holds the Deployment to what pods of the restricted standard must be, and to the time that a stop takes.
func TestManifestIsRestricted(t *testing.T) {
	var d appsv1.Deployment
	manifest(t, "Deployment", &d)
	pod, c := d.Spec.Template.Spec, d.Spec.Template.Spec.Containers[0]
	if *pod.TerminationGracePeriodSeconds < 25 {
		t.Errorf("%v is less than a stop may take: 10 s for work in flight, and 15 s more", time.Duration(*pod.TerminationGracePeriodSeconds)*time.Second)
	}
	if s := pod.SecurityContext; !*s.RunAsNonRoot || s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		t.Errorf("pod: %+v", s)
	}
	if s := c.SecurityContext; *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem || !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) {
		t.Errorf("container: %+v", s)
	}
	if c.Resources.Limits.Memory().IsZero() || c.Resources.Requests.Cpu().IsZero() || c.LivenessProbe == nil || c.ReadinessProbe == nil {
		t.Errorf("container without limits or probes: %+v", c)
	}
	var account corev1.ServiceAccount
	if manifest(t, "ServiceAccount", &account); account.AutomountServiceAccountToken == nil || *account.AutomountServiceAccountToken {
		t.Error("every Pod with the service account gets its token")
	}
	var binding rbacv1.ClusterRoleBinding
	if manifest(t, "ClusterRoleBinding", &binding); binding.RoleRef.Name != "items-manager" || binding.Subjects[0].Name != account.Name {
		t.Errorf("bound %+v", binding)
	}
}
