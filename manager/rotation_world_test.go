package manager_test

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	registrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/manager/webhook"
	"github.com/flyball-dev/flyball/manager/webhook/admission"
)

// pipes is a listener without sockets.
type pipes struct {
	conns chan net.Conn // sent by dial, received by Accept; unbuffered
	done  chan struct{} // closed by Close
}

func newPipes() *pipes { return &pipes{make(chan net.Conn), make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	select {
	case <-p.done:
	default:
		close(p.done)
	}
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipes", Net: "pipe"} }

func (p *pipes) dial() (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.conns <- theirs:
		return ours, nil
	case <-p.done:
		return nil, errors.New("connection refused")
	case <-time.After(time.Second):
		return nil, errors.New("nobody accepts")
	}
}

// cacheFor is the maximum age of the bundle that a caller trusts.
const cacheFor = 12 * time.Second

// caller calls webhooks as an API server does: it trusts the bundle that was in the configuration a moment ago.
type caller struct {
	t      *testing.T
	client kubernetes.Interface
	bundle []byte
	name   string // the server's name; empty means that of the Service
}

// call sends a request to a replica. It returns an error if the replica cannot be called.
func (c *caller) call(at *pipes) error {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(c.bundle)
	raw, err := at.dial()
	if err != nil {
		return err
	}
	defer raw.Close()
	conn := tls.Client(raw, &tls.Config{RootCAs: roots, ServerName: cmp.Or(c.name, "hooks.default.svc")})
	const body = `{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "7"}}`
	_, err = fmt.Fprintf(conn, "POST /allow?timeout=10s HTTP/1.1\r\nHost: hooks\r\nConnection: close\r\n"+
		"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	if err != nil {
		return err
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", answer.StatusCode)
	}
	return nil
}

// every calls each replica once in every interval, until span has passed. Every call must succeed.
func (c *caller) every(interval, span time.Duration, replicas ...*pipes) {
	c.t.Helper()
	old := min(interval, cacheFor)
	for end := time.Now().Add(span); time.Now().Before(end); time.Sleep(interval - old) {
		c.bundle = bundleOf(c.t, c.client)
		time.Sleep(old)
		for i, at := range replicas {
			if err := c.call(at); err != nil {
				c.t.Errorf("%v, replica %d: %v", time.Now().Format(time.DateTime), i, err)
				return
			}
		}
	}
}

func bundleOf(t *testing.T, c kubernetes.Interface) []byte {
	t.Helper()
	found, err := c.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(t.Context(), "hooks",
		metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return found.Webhooks[0].ClientConfig.CABundle
}

// configuration returns the configuration that makes API servers call the webhook.
func configuration() *registrationv1.ValidatingWebhookConfiguration {
	none, path := registrationv1.SideEffectClassNone, "/allow"
	return &registrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "hooks"},
		Webhooks: []registrationv1.ValidatingWebhook{{
			Name: "hooks.example.org", SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
			ClientConfig: registrationv1.WebhookClientConfig{Service: &registrationv1.ServiceReference{
				Namespace: "default", Name: "hooks", Path: &path,
			}},
		}},
	}
}

func configure(t *testing.T, c kubernetes.Interface) {
	t.Helper()
	_, err := c.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(t.Context(), configuration(),
		metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// Certificates in these tests live for an hour, authorities for two.
func certificates() webhook.Certificates {
	return webhook.Certificates{
		Secret: "hooks-cert", Namespace: "default", Service: "hooks", ValidatingWebhooks: []string{"hooks"},
		Lifetime: time.Hour, AuthorityLifetime: 2 * time.Hour,
	}
}

// replica runs a manager with a webhook that allows everything.
func (w *world) replica(t *testing.T, o manager.Options, changes ...func(*webhook.Certificates)) (*life, *pipes) {
	t.Helper()
	at := newPipes()
	o.Webhook = webhook.Options{Listener: at, Certificates: certificates()}
	for _, change := range changes {
		change(&o.Webhook.Certificates)
	}
	m := w.manager(t, o)
	allow := &webhook.Admission{Handler: admission.HandlerFunc(
		func(context.Context, admission.Request) admission.Response { return admission.Allowed("") })}
	if err := m.GetWebhookServer().Register("/allow", allow); err != nil {
		t.Fatal(err)
	}
	return live(t, m), at
}

// one runs f with one replica that serves.
func one(t *testing.T, f func(t *testing.T, w *world, l *life, at *pipes, c *caller)) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		l, at := w.replica(t, manager.Options{})
		configure(t, clientset(l))
		time.Sleep(time.Second)
		c := &caller{t: t, client: clientset(l)}
		c.every(time.Second, 10*time.Second, at)
		f(t, w, l, at, c)
		l.mustEnd()
	})
}

// secretOf returns the Secret with the certificate.
func secretOf(t *testing.T, c kubernetes.Interface) *corev1.Secret {
	t.Helper()
	s, err := c.CoreV1().Secrets("default").Get(t.Context(), "hooks-cert", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// listen opens a port of loopback until the test ends, and returns it.
func listen(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().(*net.TCPAddr).Port
}
