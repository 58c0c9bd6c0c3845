package main

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// TestServeWithRoles: the kubeconfig's user may do everything, a service account with its token what is bound to it.
func TestServeWithRoles(t *testing.T) {
	defer goleak.VerifyNone(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	kubeconfig, stop := startServe(ctx, t, "--controllers=", "--rbac")
	config := configOf(ctx, t, kubeconfig)
	admin, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	operator := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "operator"}}
	if _, err := admin.CoreV1().ServiceAccounts("default").Create(ctx, operator, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	issued, err := admin.CoreV1().ServiceAccounts("default").CreateToken(ctx, "operator",
		&authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	config.BearerToken = issued.Status.Token
	account, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	list := func() error {
		_, err := account.CoreV1().ConfigMaps("default").List(ctx, metav1.ListOptions{})
		return err
	}
	if err := list(); !apierrors.IsForbidden(err) ||
		!strings.Contains(err.Error(), "system:serviceaccount:default:operator") {
		t.Errorf("before it has a role: %v", err)
	}
	if _, err := admin.RbacV1().RoleBindings("default").Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "operator"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: "operator"}},
	}, metav1.CreateOptions{}); err != nil {
		t.Errorf("the administrator binds a role: %v", err)
	}
	if err := list(); err != nil {
		t.Errorf("with a role: %v", err)
	}
	if err := account.CoreV1().ConfigMaps("default").Delete(ctx, "x",
		metav1.DeleteOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("what the role does not allow: %v", err)
	}
	if _, errs := stop(); errs != "" {
		t.Error(errs)
	}
}

// TestServeAsksForTheToken: it is in the kubeconfig, which nobody else may read, and another one the next time.
func TestServeAsksForTheToken(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	tokens := map[string]bool{}
	for range 2 {
		serving, stop := context.WithCancel(ctx)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			flyball(serving, "serve", "--kubeconfig", kubeconfig, "--controllers=", "--kubelet=false",
				"--allowed-hosts=api.test")
		}()
		config := configOf(ctx, t, kubeconfig)
		trust, err := rest.TLSConfigFor(config)
		if err != nil {
			t.Fatal(err)
		}
		for token, want := range map[string]int{"": 401, "guess": 401, config.BearerToken: 200} {
			for host, code := range map[string]int{"": want, "api.test": want, "page.example": 403} {
				r, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+"/api/v1/namespaces", nil)
				if err != nil {
					t.Fatal(err)
				}
				if r.Host = host; token != "" {
					r.Header.Set("Authorization", "Bearer "+token)
				}
				answer, err := (&http.Client{
					Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: trust},
				}).Do(r)
				if err != nil {
					t.Fatal(err)
				}
				if _ = answer.Body.Close(); answer.StatusCode != code {
					t.Errorf("token %q, host %q: %d, want %d", token, host, answer.StatusCode, code)
				}
			}
		}
		if i, err := os.Stat(kubeconfig); err != nil || i.Mode().Perm() != 0o600 {
			t.Errorf("the kubeconfig has mode %v, %v", i.Mode(), err)
		}
		tokens[config.BearerToken] = true
		stop()
		<-ended
		if err := os.Truncate(kubeconfig, 0); err != nil {
			t.Fatal(err)
		}
	}
	if len(tokens) != 2 || tokens[""] {
		t.Errorf("tokens: %v", tokens)
	}
}
