package webhookclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"

	"github.com/flyball-dev/flyball/localapi/internal/verify"
)

// Target is where a webhook is: a URL or a Service.
type Target struct {
	URL      string
	Service  *Service // nil: the URL counts
	CABundle []byte   // certificates that sign the webhook's; empty: those of the system
}

// Service is a port and a path of a Service.
type Service struct {
	Namespace, Name string
	Port            int32
	Path            string
}

// Clients makes clients and shares their connections. Its methods may be called concurrently.
type Clients struct {
	// Local returns the transport to a handler in this process, or nil if there is none. at is a Service, as
	// NAMESPACE/NAME, or the beginning of a URL: https://HOST or https://HOST:PORT.
	Local func(at string) http.RoundTripper

	// Resolve returns the address, HOST:PORT, at which a Service is reached.
	Resolve func(ctx context.Context, s Service) (string, error)

	mu     sync.Mutex
	routes map[string]*route // by the target, as JSON
}

// limit is the time after which a call fails, if its context does not end before.
const limit = 30 * time.Second

// most bounds the number of targets whose connections are kept, and maxAnswer the bytes of an answer. A conversion
// webhook answers with all objects of a list.
const (
	most      = 64
	maxAnswer = 128 << 20
)

// Codec returns the codec of reviews in the given versions, for [Clients.For].
func Codec(add func(*runtime.Scheme) error, versions ...schema.GroupVersion) runtime.NegotiatedSerializer {
	scheme := runtime.NewScheme()
	if err := add(scheme); err != nil {
		panic(err) // cannot fail: the types are compiled in
	}
	codec := serializer.NewCodecFactory(scheme).LegacyCodec(versions...)
	return serializer.NegotiatedSerializerWrapper(runtime.SerializerInfo{Serializer: codec})
}

// For returns a client of a target. Errors: the target cannot be used.
func (c *Clients) For(t Target, codec runtime.NegotiatedSerializer) (*rest.RESTClient, error) {
	r, err := c.route(t)
	if err != nil {
		return nil, err
	}
	return rest.UnversionedRESTClientFor(&rest.Config{
		Host: r.origin, APIPath: r.path, Transport: r, QPS: -1, WarningHandler: rest.NoWarnings{}, Timeout: limit,
		ContentConfig: rest.ContentConfig{NegotiatedSerializer: codec, ContentType: runtime.ContentTypeJSON},
	})
}

// Close closes the connections that are not in use.
func (c *Clients) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.routes {
		r.remote.CloseIdleConnections()
	}
	c.routes = nil
}

func (c *Clients) route(t Target) (*route, error) {
	key, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	r := c.routes[string(key)]
	c.mu.Unlock()
	if r != nil {
		return r, nil
	}
	if r, err = c.newRoute(t); err != nil {
		return nil, err
	}
	c.mu.Lock()
	full := len(c.routes) >= most
	c.mu.Unlock()
	if full {
		c.Close()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.routes == nil {
		c.routes = map[string]*route{}
	}
	c.routes[string(key)] = r
	return r, nil
}

// route is the way to a webhook.
type route struct {
	clients *Clients
	origin  string   // https://HOST[:PORT]
	path    string   // of the URL
	local   string   // what a handler in this process is registered for
	service *Service // nil: the host is dialled
	remote  *http.Transport
}

func (c *Clients) newRoute(t Target) (*route, error) {
	r := &route{clients: c, service: t.Service}
	tls := transport.TLSConfig{CAData: t.CABundle, NextProtos: []string{"http/1.1"}}
	if s := t.Service; s != nil {
		tls.ServerName = s.Name + "." + s.Namespace + ".svc"
		r.local = s.Namespace + "/" + s.Name
		r.origin = "https://" + net.JoinHostPort(tls.ServerName, strconv.Itoa(int(s.Port)))
		r.path = s.Path
	} else {
		if t.URL == "" {
			return nil, errors.New("webhook configuration must have either service or URL")
		}
		u, err := url.Parse(t.URL)
		if err != nil {
			return nil, fmt.Errorf("unparsable URL: %w", err)
		}
		r.origin, r.path = u.Scheme+"://"+u.Host, u.Path
		r.local = r.origin
	}
	config, err := transport.TLSConfigFor(&transport.Config{TLS: tls})
	if err != nil {
		return nil, err
	}
	r.remote = &http.Transport{
		DialContext: r.dial, TLSClientConfig: config,
		TLSHandshakeTimeout: 10 * time.Second, MaxIdleConnsPerHost: 25, IdleConnTimeout: time.Minute,
	}
	if t.Service == nil { // The addresses of a Service are this server's business; dial would take the proxy for one.
		r.remote.Proxy = http.ProxyFromEnvironment
	}
	return r, nil
}

// RoundTrip implements [http.RoundTripper].
func (r *route) RoundTrip(request *http.Request) (*http.Response, error) {
	next := http.RoundTripper(r.remote)
	if local := r.clients.Local(r.local); local != nil {
		next = local
	}
	response, err := next.RoundTrip(request)
	if err == nil {
		response.Body = &bounded{ReadCloser: response.Body, left: maxAnswer}
	}
	return response, err
}

// bounded is the body of an answer.
type bounded struct {
	io.ReadCloser
	left int // bytes that may still be read
}

// Read implements [io.Reader].
func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= n; b.left < 0 {
		return n, fmt.Errorf("the answer of the webhook has more than %d MiB", maxAnswer>>20)
	}
	return n, err
}

func (r *route) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if r.service != nil {
		var err error
		if address, err = r.clients.Resolve(ctx, *r.service); err != nil {
			return nil, err
		}
	}
	d := net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}
	return d.DialContext(ctx, network, address)
}

// ValidateTarget validates what names a webhook in a configuration: a URL or a Service, and not both.
//
// Source: k8s.io/apiserver v0.37.2 pkg/util/webhook/validation.go, also for ValidateBundle.
func ValidateTarget(f verify.Field, url *string, s *Service) {
	switch {
	case (url == nil) == (s == nil):
		f.Require("", false, "exactly one of url or service is required")
	case url != nil:
		validateURL(f.Child("url"), *url)
	default:
		validateService(f.Child("service"), s)
	}
}

// ValidateBundle validates the certificates that a webhook is trusted by.
func ValidateBundle(f verify.Field, bundle []byte) {
	_, err := transport.TLSConfigFor(&transport.Config{TLS: transport.TLSConfig{CAData: bundle}})
	if err != nil {
		f.Reject("", true, bundle, err.Error())
	}
}

func validateURL(f verify.Field, text string) {
	const form = "; desired format: https://host[/path]"
	u, err := url.Parse(text)
	if err != nil {
		f.Require("", false, "url must be a valid URL: "+err.Error()+form)
		return
	}
	f.Reject("", u.Scheme != "https", u.Scheme, "'https' is the only allowed URL scheme"+form)
	f.Reject("", u.Host == "", u.Host, "host must be specified"+form)
	f.Reject("", u.User != nil, fmt.Sprint(u.User), "user information is not permitted in the URL")
	f.Reject("", u.Fragment != "", u.Fragment, "fragments are not permitted in the URL")
	f.Reject("", u.RawQuery != "", u.RawQuery, "query parameters are not permitted in the URL")
}

func validateService(f verify.Field, s *Service) {
	// The real server confuses name and namespace here.
	f.Require("name", s.Namespace != "", "")
	f.Require("namespace", s.Name != "", "")
	if problems := validation.IsValidPortNum(int(s.Port)); problems != nil {
		f.Reject("port", true, s.Port, "port is not valid: "+strings.Join(problems, ", "))
	}
	switch p := s.Path; p {
	case "", "/":
	case "//":
		f.Reject("path", true, p, "segment[0] may not be empty")
	default:
		f.Reject("path", p[0] != '/', p, "must start with a '/'")
		validateSegments(f.Child("path"), p)
	}
}

// validateSegments validates what is between the slashes of a path.
func validateSegments(f verify.Field, p string) {
	for i, segment := range strings.Split(strings.TrimSuffix(p[1:], "/"), "/") {
		if segment == "" {
			f.Rejectf("", true, p, "segment[%d] may not be empty", i)
			continue
		}
		for _, problem := range validation.IsDNS1123Subdomain(segment) {
			f.Rejectf("", true, p, "segment[%d]: %v", i, problem)
		}
	}
}

// ValidateVersions validates the versions of reviews that a webhook understands. missing says more of an empty list.
func ValidateVersions(f verify.Field, versions []string, missing string) {
	f.Require("", len(versions) > 0, missing)
	for i, v := range versions {
		if slices.Contains(versions[:i], v) {
			f.Index(i).Reject("", true, v, "duplicate version")
		} else {
			f.Index(i).Match("", v, validation.IsDNS1035Label)
		}
	}
	f.Reject("", len(versions) > 0 && !slices.Contains(versions, "v1") && !slices.Contains(versions, "v1beta1"),
		versions, "must include at least one of v1, v1beta1")
}
