package manager_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/auth"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
)

// permissions grants and revokes permissions of the manager as an administrator would, by one role for each resource.
type permissions struct {
	t     *testing.T
	admin kubernetes.Interface
	user  auth.User
}

func (p permissions) grant(resource string, verbs ...string) {
	p.t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "may-" + resource}}
	role.Rules = []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{resource}, Verbs: verbs}}
	if _, err := p.admin.RbacV1().ClusterRoles().Create(p.t.Context(), role, metav1.CreateOptions{}); err != nil {
		p.t.Fatal(err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: role.ObjectMeta,
		RoleRef:    rbacv1.RoleRef{Kind: "ClusterRole", Name: role.Name},
	}
	binding.Subjects = []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: p.user.Name}}
	if _, err := p.admin.RbacV1().ClusterRoleBindings().Create(p.t.Context(), binding,
		metav1.CreateOptions{}); err != nil {
		p.t.Fatal(err)
	}
}

func (p permissions) revoke(resource string) {
	p.t.Helper()
	if err := p.admin.RbacV1().ClusterRoles().Delete(p.t.Context(), "may-"+resource,
		metav1.DeleteOptions{}); err != nil {
		p.t.Fatal(err)
	}
	if err := p.admin.RbacV1().ClusterRoleBindings().Delete(p.t.Context(), "may-"+resource,
		metav1.DeleteOptions{}); err != nil {
		p.t.Fatal(err)
	}
}

// TestPermissionsComeAndGo has an administrator who revokes and grants permissions of the manager by RBAC. The manager
// reports a missing permission on /readyz and in one line of its log, continues with the rest of its work, and recovers
// without a restart.
func TestPermissionsComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := localapi.NewTestWith(t, localapi.Options{RBAC: true})
		clients := kubernetes.NewForConfigOrDie(server.RESTConfig())
		may := permissions{t, clients, auth.ServiceAccount("kube-system", "manager")}
		may.grant("pods", "list", "watch")
		may.grant("configmaps", "list", "watch")
		may.grant("secrets", "create")
		m, err := manager.New(server.RESTConfigFor(may.user), manager.Options{})
		if err != nil {
			t.Fatal(err)
		}
		podController(t, m)
		worked := 0
		onConfigMaps(t, m, "worker", func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
			if !strings.HasPrefix(r.Name, "work") {
				return reconcile.Result{}, nil
			}
			worked++
			made := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{GenerateName: r.Name + "-"}}
			_, err := clientset(m).CoreV1().Secrets("default").Create(ctx, made, metav1.CreateOptions{})
			return reconcile.Result{}, err
		})
		l := live(t, m)
		time.Sleep(time.Minute)
		if err := m.Ready(); err != nil {
			t.Fatal(err)
		}

		may.revoke("pods")
		time.Sleep(12 * time.Minute) // an open watch lasts up to ten: only requests are authorized
		const words = `informer pods: cannot list pods at the cluster scope: forbidden: User "system:serviceaccount:kube-system:manager" cannot list resource "pods" in API group "" at the cluster scope`
		if code, body := get(m, "/readyz"); code != 503 || body != "[-]"+words+"\n" {
			t.Errorf("without pods: %d %s", code, body)
		}
		if code, _ := get(m, "/livez"); code != 200 {
			t.Errorf("livez: %d", code)
		}
		time.Sleep(time.Hour)
		if lines := l.logs.with("forbidden"); len(lines) != 1 {
			t.Errorf("%d lines, want one: %q", len(lines), lines)
		}
		before := worked
		createConfigMap(t, kubernetes.NewForConfigOrDie(server.RESTConfig()), "work-0")
		synctest.Wait()
		if worked == before {
			t.Error("what is still allowed stands still")
		}
		may.grant("pods", "list", "watch")
		time.Sleep(2 * time.Minute)
		if code, body := get(m, "/readyz"); code != 200 {
			t.Errorf("granted again: %d %s", code, body)
		}
		if lines := l.logs.with("resource=\"pods\""); len(lines) != 2 ||
			!strings.Contains(lines[1], "Listing and watching resource again") {
			t.Errorf("%d lines about pods, want one more: %q", len(lines), lines)
		}

		may.revoke("secrets")
		for i := 1; i <= 3; i++ {
			createConfigMap(t, kubernetes.NewForConfigOrDie(server.RESTConfig()), fmt.Sprint("work-", i))
		}
		time.Sleep(time.Second)
		const refused = `[-]worker: 3 keys forbidden for 1s: User "system:serviceaccount:kube-system:manager" cannot create resource "secrets" in API group ""`
		if code, body := get(m, "/readyz"); code != 503 || body != refused+"\n" {
			t.Errorf("without secrets: %d %s", code, body)
		}
		time.Sleep(11 * time.Minute)
		if code, body := get(m, "/readyz"); code != 503 ||
			!strings.HasPrefix(body,
				"[-]worker: 3 keys failing, default/work-1 for 11m1s; 3 keys forbidden for 11m1s: User ") {
			t.Errorf("without secrets: %d %s", code, body)
		}
		may.grant("secrets", "create")
		time.Sleep(time.Minute)
		if code, body := get(m, "/readyz"); code != 200 {
			t.Errorf("granted again: %d %s", code, body)
		}
		if lines := l.logs.with("secrets"); len(lines) != 2 ||
			!strings.Contains(lines[1], "Reconciles are no longer forbidden") {
			t.Errorf("%d lines about secrets, want two: %q", len(lines), lines)
		}
		l.mustEnd()
	})
}

func createConfigMap(t *testing.T, c kubernetes.Interface, name string) {
	t.Helper()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := c.CoreV1().ConfigMaps("default").Create(t.Context(), cm, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}
