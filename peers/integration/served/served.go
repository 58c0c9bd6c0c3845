// Package served is what the tests of Kubernetes start in place of kube-apiserver: the edits of package integration
// call it.
package served

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/featuregate"

	"github.com/flyball-dev/flyball/internal/certs"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/auth"
	"github.com/flyball-dev/flyball/localapi/cel"
)

// TB is what Start needs of a test.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Skipf(format string, args ...any)
}

// harmless are the flags of kube-apiserver without which a test says the same: admission plugins that localapi has
// anyway or that no test needs, and APIs that are either served or not.
var harmless = []string{
	"--authorization-mode", "--disable-admission-plugins", "--enable-admission-plugins",
	"--endpoint-reconciler-type", "--runtime-config",
}

// settable are the feature gates of kube-apiserver that tests may set. The first changes nothing that they check here.
// What is behind the second is always on in localapi.
var settable = []featuregate.Feature{"CBORServingAndStorage", "ShardedListAndWatch"}

// emulated is the version whose feature gates are in force before the first test.
var emulated = utilfeature.DefaultMutableFeatureGate.EmulationVersion()

// Start starts localapi and returns the config of an administrator, and a function that stops the server. It skips a
// test that depends on flags or feature gates of kube-apiserver.
func Start(t TB, flags []string) (*rest.Config, func()) {
	t.Helper()
	for _, flag := range flags {
		if name, _, _ := strings.Cut(flag, "="); strings.HasPrefix(name, "--") && !slices.Contains(harmless, name) {
			t.Skipf("localapi has no flags of kube-apiserver: %s", flag)
		}
	}
	if version := utilfeature.DefaultMutableFeatureGate.EmulationVersion(); !version.EqualTo(emulated) {
		t.Skipf("localapi has no feature gates: the emulated version is %s", version)
	}
	for name, spec := range utilfeature.DefaultMutableFeatureGate.GetAll() {
		on := utilfeature.DefaultFeatureGate.Enabled(name)
		if on != spec.Default && !slices.Contains(settable, name) {
			t.Skipf("localapi has no feature gates: %s is %t", name, on)
		}
	}
	server, err := start()
	if err != nil {
		t.Fatalf("start localapi: %v", err)
	}
	return server.config, func() {
		if err := server.stop(); err != nil {
			t.Errorf("stop localapi: %v", err)
		}
	}
}

// Definitions returns the config for the custom resources of tests that start a second server for these alone, which
// has the storage of the first. Here it is the first. The other takes objects in namespaces that do not exist, so
// Definitions creates these namespaces.
func Definitions(ctx context.Context, config *rest.Config) (*rest.Config, error) {
	client, err := kubernetes.NewForConfig(config)
	for _, name := range []string{"metadata-crd", "metadata-watch-crd", "test-api-crd-protobuf"} {
		if err == nil {
			_, err = client.CoreV1().Namespaces().Create(ctx,
				&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		}
	}
	return config, err
}

// server is a running localapi.
type server struct {
	config *rest.Config
	stop   func() error
}

func start() (*server, error) {
	const token = "integration"
	authority, err := certs.NewAuthority(1)
	if err != nil {
		return nil, err
	}
	certificate, err := authority.Server(net.IPv4(127, 0, 0, 1))
	if err != nil {
		return nil, err
	}
	// The user is that of the real test server's config.
	admin := auth.User{Name: "system:apiserver", UID: "1", Groups: []string{auth.Masters}}
	api, err := localapi.New(localapi.Options{Tokens: map[string]auth.User{token: admin}, RBAC: true, CEL: cel.New()})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	listener, err := localapi.Listen(ctx, "127.0.0.1:0")
	if err != nil {
		cancel()
		return nil, errors.Join(err, api.Close())
	}
	served := make(chan error, 1) // one send, by the goroutine below
	go func() {
		served <- api.ServeTLS(ctx, listener, &tls.Config{
			Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12,
		})
	}()
	return &server{
		// The token, the content type and the limits are as in the config of the real test server.
		config: &rest.Config{
			Host: "https://" + listener.Addr().String(), BearerToken: token,
			TLSClientConfig: rest.TLSClientConfig{CAData: authority.PEM()},
			ContentConfig:   rest.ContentConfig{ContentType: runtime.ContentTypeProtobuf},
			QPS:             1000, Burst: 10000,
		},
		stop: func() error {
			cancel()
			return errors.Join(<-served, api.Close())
		},
	}, nil
}
