package controllerruntime_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	peerwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/flyball-dev/flyball/interop/controllerruntime"
	"github.com/flyball-dev/flyball/localapi"
	peermanager "sigs.k8s.io/controller-runtime/pkg/manager"
)

// Everything stays controller-runtime's but the server.
func ExampleNewWebhookServer() {
	server := controllerruntime.NewWebhookServer(peerwebhook.Options{CertDir: "/etc/webhook/certs"})
	server.Register("/allow", &peerwebhook.Admission{})
	fmt.Println(server.NeedLeaderElection(), server.StartedChecker()(nil))
	// Output: false not served yet
}

// labelled is a defaulter as it is written for controller-runtime.
type labelled struct{}

func (labelled) Default(_ context.Context, c *corev1.ConfigMap) error {
	c.Labels = map[string]string{"defaulted": "true"}
	return nil
}

var _ admission.Defaulter[*corev1.ConfigMap] = labelled{}

// A manager of controller-runtime, with a webhook of its builder, on our server.
func TestWebhooksOnOurServer(t *testing.T) {
	dir := t.TempDir()
	certPEM, keyPEM, err := cert.GenerateSelfSignedCertKey("localhost", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"tls.crt": certPEM, "tls.key": keyPEM} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	_ = l.Close()
	mux := http.NewServeMux()
	mux.HandleFunc("/more", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	server := controllerruntime.NewWebhookServer(peerwebhook.Options{
		Host: "127.0.0.1", Port: port, CertDir: dir, WebhookMux: mux,
	})
	m, err := peermanager.New(localapi.NewTest(t).RESTConfig(), peermanager.Options{WebhookServer: server})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the builder skips what is served already
		err := builder.WebhookManagedBy(m, &corev1.ConfigMap{}).WithDefaulter(labelled{}).Complete()
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1) // sent once, by the goroutine below
	go func() { done <- m.Start(ctx) }()
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true,
	}}
	url := fmt.Sprintf("https://127.0.0.1:%d/mutate--v1-configmap", port)
	code := 0
	for deadline := time.Now().Add(20 * time.Second); code == 0 && time.Now().Before(deadline); {
		answer, err := client.Post(url, "application/json", strings.NewReader(
			`{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "7",
			"operation": "CREATE", "object": {"apiVersion": "v1", "kind": "ConfigMap"}}}`))
		if err != nil {
			time.Sleep(10 * time.Millisecond) // it does not listen yet
			continue
		}
		code = answer.StatusCode
		_ = answer.Body.Close()
	}
	if err := server.StartedChecker()(nil); err != nil || code != http.StatusOK {
		t.Errorf("status %d, started: %v", code, err)
	}
	more, err := client.Get(fmt.Sprintf("https://127.0.0.1:%d/more", port))
	if err != nil {
		t.Fatal(err)
	}
	_ = more.Body.Close()
	if more.StatusCode != http.StatusTeapot {
		t.Errorf("the handler of WebhookMux: status %d", more.StatusCode)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counted := false
	for _, f := range families {
		if f.GetName() == "controller_runtime_webhook_requests_total" {
			counted = strings.Contains(f.String(), "/mutate--v1-configmap")
		}
	}
	if !counted {
		t.Error("the request is not in controller-runtime's metrics")
	}
}

// A Service leads to Pods that are ready, and the first list of a kind may need the conversion that this process
// serves. So caches that are not filled do not keep it from being ready.
func TestReadinessWithAConversionWebhook(t *testing.T) {
	for path, want := range map[string]bool{"/convert": true, "/validate-v1-configmap": false} {
		synctest.Test(t, func(t *testing.T) {
			api, failed := localapi.NewTest(t), apierrors.NewInternalError(errors.New("conversion webhook failed"))
			for _, verb := range []string{"list", "watch"} {
				api.Intercept(localapi.Rule{Verb: verb, Resource: "configmaps", Err: failed})
			}
			server := controllerruntime.NewWebhookServer(peerwebhook.Options{Port: -1})
			m, err := controllerruntime.NewManager(api.RESTConfig(), peermanager.Options{
				Metrics: metricsserver.Options{BindAddress: "0"}, WebhookServer: server,
			})
			if err != nil {
				t.Fatal(err)
			}
			m.GetWebhookServer().Register(path, http.NotFoundHandler())
			_, err = m.GetCache().GetInformer(t.Context(), &corev1.ConfigMap{}, cache.BlockUntilSynced(false))
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan error, 1) // sent once, by the goroutine below
			go func() { done <- m.Start(ctx) }()
			time.Sleep(time.Minute)
			if err := m.Core().Ready(); (err == nil) != want {
				t.Errorf("%s: ready: %v", path, err)
			}
			stop()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}
