package webhook_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/util/cert"

	"github.com/flyball-dev/flyball/manager/webhook"
)

// pipes is a listener without sockets.
type pipes struct {
	conns chan net.Conn // sent by call, received by Accept; unbuffered
	done  chan struct{} // closed by the first Close
	once  sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.done) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipes", Net: "pipe"} }

// call sends a request with that certificate. It returns an error if there is no response.
func (p *pipes) call(t *testing.T, certificate tls.Certificate) error {
	t.Helper()
	transport := &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			p.conns <- theirs
			return ours, nil
		},
		TLSClientConfig: &tls.Config{
			InsecureSkipVerify: true,
			GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
				return &certificate, nil
			},
		},
	}
	answer, err := (&http.Client{Transport: transport}).Get("https://pipes/a")
	if err != nil {
		return err
	}
	return answer.Body.Close()
}

// newClient returns a certificate that a client signed itself, and the same in PEM, for the file of authorities.
func newClient(t *testing.T) (tls.Certificate, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key},
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// The authorities of clients are reloaded when their file changes, like the certificate.
func TestAuthoritiesOfClientsAreReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, at := t.TempDir(), &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
		write := func(name string, text []byte) {
			t.Helper()
			if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Second)
		}
		certPEM, keyPEM, err := cert.GenerateSelfSignedCertKey("pipes", nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		write("tls.crt", certPEM)
		write("tls.key", keyPEM)
		first, firstPEM := newClient(t)
		second, secondPEM := newClient(t)
		write("clients.crt", firstPEM)
		s := webhook.NewServer(webhook.Options{Listener: at, CertDir: dir, ClientCAName: "clients.crt"})
		if err := s.Register("/a", http.NotFoundHandler()); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1) // sent once, by the goroutine below
		go func() { done <- s.Run(ctx) }()
		served := func(what string, wantFirst, wantSecond bool, note string) {
			t.Helper()
			one, two := at.call(t, first), at.call(t, second)
			if (one == nil) != wantFirst || (two == nil) != wantSecond {
				t.Errorf("%s: the first client: %v; the second: %v", what, one, two)
			}
			if got := s.Note(); !strings.Contains(got, note) || note == "" && got != "" {
				t.Errorf("%s: note %q", what, got)
			}
		}
		served("at first", true, false, "")
		write("clients.crt", append(firstPEM, secondPEM...))
		served("with both", true, true, "")
		write("clients.crt", secondPEM)
		served("with the second", false, true, "")
		write("clients.crt", []byte("half a file"))
		served("garbled", false, true, "using the last good file: authorities of clients: ")
		stop()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// The handlers of WebhookMux answer requests for paths that are not registered. With ListenAtOnce the server listens
// before there is a webhook.
func TestWebhookMux(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("/more", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	s := webhook.NewServer(webhook.Options{WebhookMux: mux, ListenAtOnce: true})
	if err := s.Register("/a", http.NotFoundHandler()); err != nil {
		t.Fatal(err)
	}
	if got := get(s, "/more").Code; got != http.StatusTeapot {
		t.Errorf("/more: status %d", got)
	}
	if got := get(s, "/none"); !strings.Contains(got.Body.String(), "there is no webhook at /none; there are /a") {
		t.Errorf("/none: %s", got.Body)
	}
	if err := webhook.NewServer(webhook.Options{ListenAtOnce: true}).Health(); err == nil {
		t.Error("it is healthy before it listens")
	}
}
