package envtest_test

import (
	"crypto/tls"
	"encoding/json"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/localapi/envtest"
)

// TestWebhooks serves a webhook as a suite does, at the address and with the certificate that the environment names.
func TestWebhooks(t *testing.T) {
	e := &envtest.Environment{WebhookInstallOptions: envtest.WebhookInstallOptions{
		Paths: []string{"testdata/webhooks"},
	}}
	config, err := e.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := e.Stop(); err != nil {
			t.Error(err)
		}
	}()
	serveWebhook(t, &e.WebhookInstallOptions)
	maps := clientFor(t, config).CoreV1().ConfigMaps("default")
	a := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	_, err = maps.Create(t.Context(), a, metav1.CreateOptions{})
	if err == nil || !strings.Contains(err.Error(), `"maps.example.com" denied the request: not here`) {
		t.Errorf("create: %v", err)
	}
	installed, err := clientFor(t, config).AdmissionregistrationV1().ValidatingWebhookConfigurations().
		Get(t.Context(), "maps", metav1.GetOptions{})
	want := "https://127.0.0.1:" + strconv.Itoa(e.WebhookInstallOptions.LocalServingPort) + "/validate"
	if err != nil || ptr.Deref(installed.Webhooks[0].ClientConfig.URL, "") != want {
		t.Errorf("installed: %v, %v, want the URL %s", installed, err, want)
	}
	if read := e.WebhookInstallOptions.ValidatingWebhooks; len(read) != 1 {
		t.Errorf("read: %v", read)
	}
}

// serveWebhook refuses everything.
func serveWebhook(t *testing.T, o *envtest.WebhookInstallOptions) {
	t.Helper()
	certificate, err := tls.LoadX509KeyPair(filepath.Join(o.LocalServingCertDir, "tls.crt"),
		filepath.Join(o.LocalServingCertDir, "tls.key"))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil || r.URL.Path != "/validate" {
			t.Errorf("%s: %v", r.URL, err)
		}
		review.Response = &admissionv1.AdmissionResponse{
			UID: review.Request.UID, Result: &metav1.Status{Message: "not here"},
		}
		review.Request = nil
		_ = json.NewEncoder(w).Encode(review)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	if err := server.Listener.Close(); err != nil {
		t.Fatal(err)
	}
	address := net.JoinHostPort(o.LocalServingHost, strconv.Itoa(o.LocalServingPort))
	if server.Listener, err = net.Listen("tcp", address); err != nil {
		t.Fatal(err)
	}
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(server.Close)
}
