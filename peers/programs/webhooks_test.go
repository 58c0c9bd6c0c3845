package programs

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/test/images/agnhost/crd-conversion-webhook/converter"

	"github.com/flyball-dev/flyball/internal/certs"
)

// serveWebhooks serves the webhooks that specs deploy as pods, and returns the flags of flyball serve for them.
// Admission is a process of agnhost, and conversion the function that agnhost calls, because that command of agnhost
// must run in a cluster. Each spec makes a certificate for its namespace, and the server name tells which to use.
func (s *side) serveWebhooks() (flags []string) {
	s.t.Helper()
	for _, hook := range []struct {
		service, secret string
		handler         http.Handler
	}{
		{"e2e-test-webhook", "sample-webhook-secret", s.agnhost("webhook")},
		{
			"e2e-test-crd-conversion-webhook", "sample-custom-resource-conversion-webhook-secret",
			http.HandlerFunc(converter.ServeExampleConvert),
		},
	} {
		front := s.listen()
		server := &http.Server{
			Handler: hook.handler,
			TLSConfig: &tls.Config{GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
				parts := strings.Split(hello.ServerName, ".")
				if len(parts) != 3 || parts[0] != hook.service {
					return nil, fmt.Errorf("the name is %q, want %s.NAMESPACE.svc", hello.ServerName, hook.service)
				}
				secrets := s.client.CoreV1().Secrets(parts[1])
				secret, err := secrets.Get(hello.Context(), hook.secret, metav1.GetOptions{})
				if err != nil {
					return nil, err
				}
				pair, err := tls.X509KeyPair(secret.Data["tls.crt"], secret.Data["tls.key"])
				return &pair, err
			}},
		}
		go func() { _ = server.ServeTLS(front, "", "") }() // it ends with Close
		s.t.Cleanup(func() { _ = server.Close() })
		flags = append(flags, fmt.Sprintf("--webhook-service=*/%s=%s", hook.service, front.Addr()))
	}
	return flags
}

// agnhost starts a command of agnhost that serves TLS, and returns a proxy for it.
func (s *side) agnhost(command string) http.Handler {
	s.t.Helper()
	authority, err := certs.NewAuthority(1)
	if err != nil {
		s.t.Fatal(err)
	}
	pair, err := authority.Names("localhost")
	if err != nil {
		s.t.Fatal(err)
	}
	certificate, key, err := certs.PEM(pair)
	if err != nil {
		s.t.Fatal(err)
	}
	dir := s.t.TempDir()
	for name, data := range map[string][]byte{"tls.crt": certificate, "tls.key": key} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			s.t.Fatal(err)
		}
	}
	free := s.listen()
	address := free.Addr().(*net.TCPAddr)
	free.Close()
	s.start("agnhost-"+command, filepath.Join(s.bin, "agnhost"), command, fmt.Sprint("--port=", address.Port),
		"--tls-cert-file="+filepath.Join(dir, "tls.crt"), "--tls-private-key-file="+filepath.Join(dir, "tls.key"))
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "https", Host: address.String()})
	proxy.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: authority.Pool(), ServerName: "localhost"}}
	return proxy
}

// listen opens a loopback port.
func (s *side) listen() net.Listener {
	s.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	return l
}
