package deploytest

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/manifest"
	"github.com/flyball-dev/flyball/internal/certs"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/audit"
	"github.com/flyball-dev/flyball/localapi/auth"
)

// adminToken is the token of a user that may do everything.
const adminToken = "admin"

// Cluster is an API server with the manifests, and with RBAC.
type Cluster struct {
	*localapi.Server
	// Admin may do everything.
	Admin client.Client
	// address is host:port. account has the files that a kubelet mounts into the Pod: token, ca.crt and namespace.
	address, account string
	audit            *audit.Log
	user             corev1.ServiceAccount // of the program
}

// Accepted applies the objects to a server, which must know all their kinds and fields. The program's roles must allow
// it to read what identifies the server.
func Accepted(t *testing.T, objects []manifest.Object) {
	t.Helper()
	c := newCluster(t, objects, nil)
	program, err := client.New(c.RESTConfigFor(auth.ServiceAccount(c.user.Namespace, c.user.Name)), client.Options{})
	must(t, err)
	system := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem}}
	if err := program.Get(t.Context(), client.ObjectKeyFromObject(system), system); err != nil {
		t.Errorf("the program cannot find out whether the server is another one: %v", err)
	}
}

// newCluster starts a server on loopback and applies the objects, which must have no unknown fields. It calls the
// webhooks of services at these addresses.
func newCluster(t *testing.T, objects []manifest.Object, services map[string]string) *Cluster {
	t.Helper()
	c := &Cluster{audit: &audit.Log{}, account: t.TempDir()}
	var err error
	c.Server, err = localapi.New(localapi.Options{
		RBAC: true, Audit: c.audit, NoKubernetesService: true, Tokens: map[string]auth.User{adminToken: auth.Admin()},
		WebhookServices: services,
	})
	must(t, err)
	ca := c.listen(t)
	c.Admin, err = client.New(c.RESTConfig(), client.Options{})
	must(t, err)
	must(t, manifest.Install(t.Context(), c.Admin, objects))
	find(t, objects, "ServiceAccount", &c.user)
	asked := &authenticationv1.TokenRequest{}
	must(t, c.Admin.SubResource("token").Create(t.Context(), &c.user, asked))
	for name, text := range map[string]string{
		"token": asked.Status.Token, "ca.crt": string(ca), "namespace": c.user.Namespace,
	} {
		must(t, os.WriteFile(filepath.Join(c.account, name), []byte(text), 0o644))
	}
	return c
}

// listen serves over TLS until the test ends, and returns the certificate of the authority.
func (c *Cluster) listen(t *testing.T) (ca []byte) {
	t.Helper()
	authority, err := certs.NewAuthority(1)
	must(t, err)
	certificate, err := authority.Server(net.IPv4(127, 0, 0, 1), "localhost")
	must(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	c.address = listener.Addr().String()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	served := make(chan error, 1) // one send, by the goroutine below
	go func() {
		served <- c.ServeTLS(ctx, listener, &tls.Config{Certificates: []tls.Certificate{certificate}})
	}()
	t.Cleanup(func() {
		stop()
		must(t, <-served)
		must(t, c.Close())
	})
	return authority.PEM()
}

// kubeconfig writes a kubeconfig with the token of the service account.
func (c *Cluster) kubeconfig(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "kubeconfig")
	file := func(name string) string { return filepath.Join(c.account, name) }
	must(t, clientcmd.WriteToFile(clientcmdapi.Config{
		CurrentContext: "c",
		Contexts:       map[string]*clientcmdapi.Context{"c": {Cluster: "c", AuthInfo: "c"}},
		Clusters: map[string]*clientcmdapi.Cluster{
			"c": {Server: "https://" + c.address, CertificateAuthority: file("ca.crt")},
		},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"c": {TokenFile: file("token")}},
	}, path))
	return path
}

// forbidden returns the requests of the program that were forbidden.
func (c *Cluster) forbidden() []audit.Entry {
	user := auth.ServiceAccount(c.user.Namespace, c.user.Name).Name
	return c.audit.Entries(func(e audit.Entry) bool { return e.Code == http.StatusForbidden && e.User == user })
}

// ask returns the status and the body of a page of the program. It does not verify the certificate, which the program
// has made itself.
func ask(ctx context.Context, url, token string) (code int, body string, err error) {
	asks := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true,
	}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, "", err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := asks.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(text), err
}

// await asks until the answer has the code and the part.
func await(t *testing.T, url, token string, code int, part string, output fmt.Stringer) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		got, body, err := ask(t.Context(), url, token)
		if err == nil && got == code && strings.Contains(body, part) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: want %d %q, have %d %q, %v; the program printed:\n%s", url, code, part, got, body, err,
				output)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
