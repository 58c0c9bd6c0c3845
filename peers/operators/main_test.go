package operators

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/flyball-dev/flyball/peers/upstream"
)

// plane is the control plane that all tests of this package share: etcd and kube-apiserver, with RBAC, without
// controllers.
var plane *upstream.ControlPlane

func TestMain(m *testing.M) {
	code, err := withPlane(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func withPlane(m *testing.M) (code int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 40*time.Minute) // the first build
	defer cancel()
	plane, err = upstream.Start(ctx, upstream.Options{AuthorizationMode: "RBAC", Log: os.Stderr})
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, plane.Stop()) }()
	return m.Run(), nil
}

// admin is the config of the administrator, without a limit of requests.
func admin(t *testing.T) *rest.Config {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", plane.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	return config
}

// as is the config of a service account, which must exist.
func as(t *testing.T, namespace, account string) *rest.Config {
	t.Helper()
	client := kubernetes.NewForConfigOrDie(admin(t))
	request, err := client.CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), account,
		&authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	config := rest.AnonymousClientConfig(admin(t))
	config.QPS, config.BearerToken = -1, request.Status.Token
	return config
}
