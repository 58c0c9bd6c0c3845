package scaffold

import (
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/flyball-dev/flyball/client/manifest"
	"github.com/flyball-dev/flyball/deploy/deploytest"
	"github.com/flyball-dev/flyball/internal/kit"
)

// TestManifests renders what make deploy installs. kustomize puts a prefix before names; where it does not know that
// something is a name, the project has it with the prefix.
func TestManifests(t *testing.T) {
	kit.Guard(t)
	dir := newProjectDir(t)
	deploytest.Render(t, filepath.Join(dir, "config/default")) // also without kinds
	createAPI(t, dir, "v1/Guestbook")
	createWebhook(t, dir, "v1/Guestbook", true, true)
	objects := deploytest.Render(t, filepath.Join(dir, "config/default"))
	named := map[string]bool{}
	for _, o := range objects {
		named[o.GetName()] = true
	}
	main := filesOf(t, dir)["cmd/main.go"]
	for _, name := range []string{
		"guestbook-webhook-service", "guestbook-mutating-webhook-configuration",
		"guestbook-validating-webhook-configuration", "guestbook-system",
	} {
		if !named[name] || !strings.Contains(main, `"`+name+`"`) {
			t.Errorf("%s is not both in the manifests and in cmd/main.go", name)
		}
	}
	for _, o := range objects {
		var role rbacv1.ClusterRole
		if !strings.HasSuffix(o.GetKind(), "Role") {
			continue
		}
		if err := manifest.Find([]manifest.Object{o}, o.GetKind(), &role); err != nil {
			t.Fatal(err)
		}
		for _, r := range role.Rules {
			for _, name := range r.ResourceNames { // the manager makes its lease and its Secret itself
				if !named[name] && name != "guestbook" && name != "kube-system" && !strings.Contains(main, `Secret: "`+name+`"`) {
					t.Errorf("%s %s is about %s, which is not there", o.GetKind(), o.GetName(), name)
				}
			}
		}
	}
	var d appsv1.Deployment
	if err := manifest.Find(objects, "Deployment", &d); err != nil {
		t.Fatal(err)
	}
	pod, c := d.Spec.Template.Spec, d.Spec.Template.Spec.Containers[0]
	if *pod.TerminationGracePeriodSeconds < 30 { // 10 s for the work in flight, 20 s for the rest of the stop
		t.Errorf("a stop may take %d s", *pod.TerminationGracePeriodSeconds)
	}
	if !*pod.SecurityContext.RunAsNonRoot || !*c.SecurityContext.ReadOnlyRootFilesystem ||
		*c.SecurityContext.AllowPrivilegeEscalation || c.Image != "guestbook:v0.1.0" ||
		c.ImagePullPolicy != corev1.PullIfNotPresent || c.Resources.Limits.Memory().IsZero() {
		t.Errorf("container: %+v", c)
	}
}
