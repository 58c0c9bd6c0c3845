package localapi

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/localapi/internal/codec"
)

// Limits of a connection to [Server.Serve]. A watch has none but the first: it lasts until somebody ends it.
const (
	readHeaderTimeout = 10 * time.Second
	bodyTimeout       = 30 * time.Second // from the end of the header to the end of the body
	answerTimeout     = time.Minute      // from the end of the header to the end of the answer
	idleTimeout       = time.Minute      // from the end of an answer to the next request
)

// guard stands before the API on a socket. It refuses requests that a web page may have had a browser send, and bounds how
// long a request's body may take.
//
// A browser reaches the loopback ports of its machine for every page that it shows. What it sends for a page of elsewhere
// differs from what the server's own clients send in three ways. The host is a name of the page's choice, if the page lets
// its name stand for 127.0.0.1 to be taken for a page of the server. The Origin header says where the page comes from. And
// without asking the server first, a browser sends only the content types that a form can have, or none.
type guard struct {
	api     http.Handler
	codec   *codec.Codec
	allowed []string // names of the server, beside localhost
}

// ServeHTTP implements [http.Handler].
func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	limitBody(w, r)
	switch {
	case !g.isOurs(r):
		g.forbid(w, fmt.Sprintf("host %q: this server is asked by the address that it listens at, as localhost, "+
			"or by a name that it was started to allow", r.Host))
	case !sameOrigin(r):
		g.forbid(w, fmt.Sprintf("origin %q: this server takes no requests of other web pages", r.Header.Get("Origin")))
	case lacksContentType(r):
		accepted := []string{runtime.ContentTypeJSON, runtime.ContentTypeYAML, runtime.ContentTypeProtobuf}
		g.refuse(w, codec.Status(codec.UnsupportedMediaType(accepted...)))
	default:
		g.api.ServeHTTP(w, r)
	}
}

func (g *guard) forbid(w http.ResponseWriter, message string) {
	g.refuse(w, &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Reason: metav1.StatusReasonForbidden, Code: http.StatusForbidden, Message: message,
	})
}

func (g *guard) refuse(w http.ResponseWriter, status *metav1.Status) {
	body, err := g.codec.Encode(status, codec.JSON, false)
	if err != nil {
		http.Error(w, status.Message, int(status.Code))
		return
	}
	w.Header().Set("Content-Type", codec.JSON.ContentType())
	w.WriteHeader(int(status.Code))
	_, _ = w.Write(body)
}

// isOurs reports whether the request asks for a name of this server. No browser reaches what is no TCP connection.
func (g *guard) isOurs(r *http.Request) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	if !ok {
		return true
	}
	host := strings.TrimSuffix((&url.URL{Host: r.Host}).Hostname(), ".")
	same := func(name string) bool { return strings.EqualFold(name, host) }
	if same("localhost") || slices.ContainsFunc(g.allowed, same) {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap() == local.AddrPort().Addr().Unmap().WithZone("")
}

// sameOrigin reports whether the request comes from no web page, or from one of this server.
func sameOrigin(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return true
	}
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	return strings.EqualFold(origin, scheme+"://"+r.Host)
}

// lacksContentType reports whether a body is of no content type, which a kube-apiserver takes for JSON. That of a request with
// an Authorization header (of kubectl create --raw) is none that a web page could send without asking.
func lacksContentType(r *http.Request) bool {
	return r.Body != http.NoBody && r.Method != http.MethodGet && r.Method != http.MethodDelete &&
		r.Header.Get("Content-Type") == "" && r.Header.Get("Authorization") == ""
}

// limitBody bounds how long the body may take. Once it is read, the connection may be silent again: the read that stays
// pending tells that the client has left.
func limitBody(w http.ResponseWriter, r *http.Request) {
	if r.Body == http.NoBody {
		return
	}
	connection := http.NewResponseController(w)
	if connection.SetReadDeadline(time.Now().Add(bodyTimeout)) == nil {
		r.Body = &timedBody{ReadCloser: r.Body, connection: connection}
	}
}

// timedBody is a body with a deadline, which ends with it.
type timedBody struct {
	io.ReadCloser
	connection *http.ResponseController
}

// Read implements [io.Reader].
func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF { //nolint:errorlint // as an io.Reader returns it
		_ = b.connection.SetReadDeadline(time.Time{}) // fails only once the connection is gone
	}
	return n, err
}
