package localapi_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/localapi"
)

// tokenObjects are a service account and a pod that runs as it.
func tokenObjects() (*corev1.ServiceAccount, *corev1.Pod) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"}, Spec: corev1.PodSpec{
		ServiceAccountName: "robot", NodeName: "node-1", Containers: []corev1.Container{{Name: "c", Image: "i"}},
	}}
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "robot", Namespace: "default"}}, pod
}

// withToken is a client that comes with a bearer token.
func withToken(t *testing.T, server *localapi.Test, token string) kubernetes.Interface {
	t.Helper()
	config := rest.CopyConfig(server.RESTConfig())
	config.BearerToken = token
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// TestServiceAccountToken asks for a token and uses it: the server knows the service account by it until it has run
// out, or what it is bound to is gone.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/registry/core/serviceaccount/storage/token.go, pkg/serviceaccount/claims.go.
func TestServiceAccountToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		account, pod := tokenObjects()
		server := localapi.NewTestWith(t, localapi.Options{RBAC: true}, account, pod)
		ctx, admin := t.Context(), kubernetes.NewForConfigOrDie(server.RESTConfig())
		ask := func(to *authenticationv1.BoundObjectReference, audiences ...string) string {
			t.Helper()
			r, err := admin.CoreV1().ServiceAccounts("default").CreateToken(ctx, "robot",
				&authenticationv1.TokenRequest{
					Spec: authenticationv1.TokenRequestSpec{
						BoundObjectRef: to, ExpirationSeconds: ptr.To[int64](900),
						Audiences: audiences,
					},
				}, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if got := r.Status.ExpirationTimestamp.Time; !got.Equal(time.Now().Add(15 * time.Minute)) {
				t.Errorf("expires at %v", got)
			}
			return r.Status.Token
		}
		plain, elsewhere := ask(nil), ask(nil, "vault")
		bound := ask(&authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: "web"})

		self := func(token string) (authenticationv1.UserInfo, error) {
			r, err := withToken(t, server, token).AuthenticationV1().SelfSubjectReviews().Create(ctx,
				&authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
			if err != nil {
				return authenticationv1.UserInfo{}, err
			}
			return r.Status.UserInfo, nil
		}
		u, err := self(bound)
		if err != nil || u.Username != "system:serviceaccount:default:robot" ||
			u.Extra["authentication.kubernetes.io/pod-name"][0] != "web" {
			t.Errorf("with the pod's token: %+v, %v", u, err)
		}
		if _, err := withToken(t, server, plain).CoreV1().Pods("default").List(ctx,
			metav1.ListOptions{}); !apierrors.IsForbidden(err) {
			t.Errorf("a service account without a role lists pods: %v", err)
		}
		if _, err := self(elsewhere); !apierrors.IsUnauthorized(err) {
			t.Errorf("with a token for somebody else: %v", err)
		}
		review := func(token string, audiences ...string) authenticationv1.TokenReviewStatus {
			r, err := admin.AuthenticationV1().TokenReviews().Create(ctx, &authenticationv1.TokenReview{
				Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: audiences},
			}, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			return r.Status
		}
		if s := review(elsewhere, "vault", "other"); !s.Authenticated || len(s.Audiences) != 1 ||
			s.User.Username != u.Username {
			t.Errorf("review of a token for somebody else: %+v", s)
		}
		if s := review(elsewhere); s.Authenticated || !strings.Contains(s.Error, "audiences") {
			t.Errorf("review of a token for somebody else by us: %+v", s)
		}

		if err := admin.CoreV1().Pods("default").Delete(ctx, "web",
			metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}); err != nil {
			t.Fatal(err)
		}
		if _, err := self(bound); !apierrors.IsUnauthorized(err) {
			t.Errorf("after the pod is gone: %v", err)
		}
		if _, err := self(plain); err != nil {
			t.Errorf("a token that is not bound to the pod: %v", err)
		}
		time.Sleep(15 * time.Minute)
		if _, err := self(plain); !apierrors.IsUnauthorized(err) {
			t.Errorf("after its time: %v", err)
		}
	})
}

// TestTokenRequestErrors sends requests that no token can be given for.
func TestTokenRequestErrors(t *testing.T) {
	account, pod := tokenObjects()
	pod.Spec.ServiceAccountName = "other"
	config := localapi.NewTest(t, account, pod).RESTConfig()
	client := kubernetes.NewForConfigOrDie(config).CoreV1().ServiceAccounts("default")
	ref := func(kind, name string) *authenticationv1.BoundObjectReference {
		return &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: kind, Name: name}
	}
	for name, c := range map[string]struct {
		account string
		spec    authenticationv1.TokenRequestSpec
		want    func(error) bool
	}{
		"no such account": {"nobody", authenticationv1.TokenRequestSpec{}, apierrors.IsNotFound},
		"too short": {
			"robot",
			authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](599)},
			apierrors.IsInvalid,
		},
		"another's pod": {
			"robot",
			authenticationv1.TokenRequestSpec{BoundObjectRef: ref("Pod", "web")},
			apierrors.IsBadRequest,
		},
		"no such secret": {
			"robot",
			authenticationv1.TokenRequestSpec{BoundObjectRef: ref("Secret", "s")},
			apierrors.IsNotFound,
		},
		"cannot be bound": {
			"robot",
			authenticationv1.TokenRequestSpec{BoundObjectRef: ref("ConfigMap", "c")},
			apierrors.IsBadRequest,
		},
	} {
		_, err := client.CreateToken(t.Context(), c.account, &authenticationv1.TokenRequest{Spec: c.spec},
			metav1.CreateOptions{})
		if !c.want(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
