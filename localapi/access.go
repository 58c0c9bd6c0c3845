package localapi

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/localapi/auth"
	"github.com/flyball-dev/flyball/localapi/internal/codec"
	"github.com/flyball-dev/flyball/localapi/internal/registry"
	"github.com/flyball-dev/flyball/localapi/internal/tokens"
)

// RESTConfigFor is like [Server.RESTConfig], but the client acts as user u. With [Options.RBAC], the roles bound to u
// decide what it may do.
func (s *Server) RESTConfigFor(u auth.User) *rest.Config {
	u = u.Known()
	return s.config(&u)
}

// coreObject returns an object of the core group, or NotFound if the server does not serve its type.
func (s *Server) coreObject(plural, namespace, name string) (metav1.Object, error) {
	r := s.served.Load().resources[corev1.SchemeGroupVersion.WithResource(plural)]
	if r == nil {
		return nil, apierrors.NewNotFound(corev1.Resource(plural), name)
	}
	o, err := r.Get(context.Background(), namespace, name, "")
	if err != nil {
		return nil, err
	}
	return o.Meta, nil
}

// issued returns a function that maps the issuer's tokens to their users. It accepts only tokens meant for this server.
func issued(i *tokens.Issuer) func(token string) (auth.User, bool, error) {
	return func(token string) (auth.User, bool, error) {
		u, _, ok, err := i.User(token, []string{tokens.Audience})
		return u, ok, err
	}
}

// storedRoles are the roles and bindings that the server serves.
type storedRoles struct{ server *Server }

func (s storedRoles) resource(plural string) *registry.Resource {
	return s.server.served.Load().resources[rbacv1.SchemeGroupVersion.WithResource(plural)]
}

// Role implements rbac.Roles.
func (s storedRoles) Role(namespace, name string) (*rbacv1.Role, error) {
	return find[*rbacv1.Role](s.resource("roles"), "roles", namespace, name)
}

// ClusterRole implements rbac.Roles.
func (s storedRoles) ClusterRole(name string) (*rbacv1.ClusterRole, error) {
	return find[*rbacv1.ClusterRole](s.resource("clusterroles"), "clusterroles", "", name)
}

// ClusterRoles implements rbac.Roles.
func (s storedRoles) ClusterRoles() ([]*rbacv1.ClusterRole, error) {
	return all[*rbacv1.ClusterRole](s.resource("clusterroles"), "")
}

// RoleBindings implements rbac.Roles.
func (s storedRoles) RoleBindings(namespace string) ([]*rbacv1.RoleBinding, error) {
	return all[*rbacv1.RoleBinding](s.resource("rolebindings"), namespace)
}

// ClusterRoleBindings implements rbac.Roles.
func (s storedRoles) ClusterRoleBindings() ([]*rbacv1.ClusterRoleBinding, error) {
	return all[*rbacv1.ClusterRoleBinding](s.resource("clusterrolebindings"), "")
}

// find returns a stored object. Errors: NotFound.
func find[T runtime.Object](r *registry.Resource, plural, namespace, name string) (T, error) {
	var none T
	if r == nil {
		return none, apierrors.NewNotFound(rbacv1.Resource(plural), name)
	}
	o, err := r.Get(context.Background(), namespace, name, "")
	if err != nil {
		return none, err
	}
	return o.Object.(T), nil
}

// all returns the stored objects of a namespace, or those of all namespaces.
func all[T runtime.Object](r *registry.Resource, namespace string) ([]T, error) {
	if r == nil {
		return nil, nil
	}
	list, err := r.List(context.Background(), registry.ListOptions{Selection: registry.Selection{Namespace: namespace}})
	if err != nil {
		return nil, err
	}
	objects := make([]T, len(list.Objects))
	for i, o := range list.Objects {
		objects[i] = o.Object.(T)
	}
	return objects, nil
}

// Time limits of a connection to [Server.Serve]. Only the first applies to a watch, which lasts until the client or the
// server ends it.
const (
	readHeaderTimeout = 10 * time.Second
	bodyTimeout       = 30 * time.Second // from the end of the header to the end of the body
	answerTimeout     = time.Minute      // from the end of the header to the end of the answer
	idleTimeout       = time.Minute      // from the end of an answer to the next request
)

// guard stands in front of the API on a socket. It refuses requests that a web page may have made a browser send, and
// bounds how long a request's body may take.
//
// Any page that a browser shows can make it send requests to the loopback ports of its machine. Such a request differs
// in three ways from those of the server's own clients. Its host is a name that the page chose, if the page's own name
// was made to resolve to 127.0.0.1 (DNS rebinding). Its Origin header names the site of the page. And unless it asks
// the server first (preflight), a browser sends only the content types that an HTML form can have, or none.
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
		g.forbid(w, fmt.Sprintf("host %q: this server accepts requests to the address that it listens at, to "+
			"localhost, and to the names that it was started to allow", r.Host))
	case !sameOrigin(r):
		g.forbid(w, fmt.Sprintf("origin %q: this server accepts no requests from other web pages",
			r.Header.Get("Origin")))
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
		Status:   metav1.StatusFailure, Reason: metav1.StatusReasonForbidden, Code: http.StatusForbidden,
		Message: message,
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

// isOurs reports whether the request's host is a name of this server. It accepts any host on a connection that is not
// TCP, since a browser cannot reach that.
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

// sameOrigin reports whether the request comes from no web page, or from one that this server served.
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

// lacksContentType reports whether the request has a body without a content type. A kube-apiserver takes such a body
// for JSON. A request with an Authorization header (kubectl create --raw sends one) passes: a web page could not send
// it without a preflight.
func lacksContentType(r *http.Request) bool {
	return r.ContentLength != 0 && r.Method != http.MethodGet && r.Method != http.MethodDelete &&
		r.Header.Get("Content-Type") == "" && r.Header.Get("Authorization") == ""
}

// limitBody bounds how long the body may take. The deadline is lifted once the body has been read: net/http then keeps
// a read pending to notice when the client leaves, and that read may take arbitrarily long.
func limitBody(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength == 0 {
		return
	}
	connection := http.NewResponseController(w)
	if connection.SetReadDeadline(time.Now().Add(bodyTimeout)) == nil {
		r.Body = &timedBody{ReadCloser: r.Body, connection: connection}
	}
}

// timedBody is a request's body. Its read deadline is lifted at its end.
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
