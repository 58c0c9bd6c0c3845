package localapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"

	registrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/localapi/internal/rbac"
	"github.com/flyball-dev/flyball/localapi/internal/registry"
	"github.com/flyball-dev/flyball/localapi/internal/watchcache"
	"github.com/flyball-dev/flyball/localapi/internal/webhook"
	"github.com/flyball-dev/flyball/localapi/internal/webhookclient"
)

// webhooks calls the webhooks that the server's objects configure.
type webhooks struct {
	server     *Server
	clients    webhookclient.Clients
	services   map[string]string // see [Options.WebhookServices]
	mutating   webhook.Mutating
	validating webhook.Validating

	mu    sync.Mutex
	local map[string]http.Handler // see [Server.HandleWebhook]
}

func newWebhooks(s *Server, o Options, authorizer *rbac.Authorizer) *webhooks {
	w := &webhooks{server: s, services: o.WebhookServices, local: map[string]http.Handler{}}
	w.clients.Local, w.clients.Resolve = w.transport, w.resolve
	shared := webhook.Options{
		Clients: &w.clients, Codec: s.env.Codec.JSON(), CEL: o.CEL, Authorizer: authorizer,
	}
	w.mutating.Options, w.validating.Options = shared, shared
	return w
}

// follow reads the configurations, and again after every write to one.
func (w *webhooks) follow() error {
	return errors.Join(
		followAll(w.server, "mutatingwebhookconfigurations", w.mutating.Set),
		followAll(w.server, "validatingwebhookconfigurations", w.validating.Set),
	)
}

// followAll calls set with the objects of a resource, and again after every write to one.
func followAll[T runtime.Object](s *Server, plural string, set func([]T)) error {
	r := s.registration(plural)
	if r == nil {
		return nil
	}
	return follow(func() error {
		all, err := everything[T](r)
		if err == nil {
			set(all)
		}
		return err
	}, r)
}

// registration returns a resource of admissionregistration.k8s.io/v1, or nil if it is not served.
func (s *Server) registration(plural string) *registry.Resource {
	return s.served.Load().resources[registrationv1.SchemeGroupVersion.WithResource(plural)]
}

// follow calls load, and again after every write to one of the resources. Only one load runs at a time.
func follow(load func() error, resources ...*registry.Resource) error {
	var loading sync.Mutex
	alone := func() error {
		loading.Lock()
		defer loading.Unlock()
		return load()
	}
	for _, r := range resources {
		r.Changed = func(ctx context.Context, _ *watchcache.Object, _ bool) {
			if err := alone(); err != nil { // the write is done already
				klog.FromContext(ctx).Error(err, "Objects were not read", "kind", r.Definition.Kind)
			}
		}
	}
	if err := alone(); err != nil {
		return fmt.Errorf("read %s: %w", resources[0].Definition.Kind, err)
	}
	return nil
}

// everything returns all objects of a resource, sorted by name.
func everything[T runtime.Object](r *registry.Resource) (all []T, err error) {
	result, err := r.List(context.Background(), registry.ListOptions{})
	for _, o := range result.Objects {
		all = append(all, o.Object.(T))
	}
	return all, err
}

// HandleWebhook makes h answer the calls of the webhooks at a Service, named NAMESPACE/NAME, or below the beginning of
// a URL: https://HOST or https://HOST:PORT. The calls do not leave the process: there is no socket and no TLS, and the
// caBundle does not matter. This goes for admission and for the conversion of custom resources. A nil h ends it.
//
// h gets the path of the webhook's configuration. It runs in a goroutine of its own, which [Server.Close] waits for,
// and may read and write the objects of this server. If it panics, the call fails as if the connection broke.
func (s *Server) HandleWebhook(at string, h http.Handler) {
	s.webhooks.mu.Lock()
	defer s.webhooks.mu.Unlock()
	s.webhooks.local[strings.TrimSuffix(at, "/")] = h
}

// transport implements webhookclient.Clients.Local.
func (w *webhooks) transport(at string) http.RoundTripper {
	w.mu.Lock()
	defer w.mu.Unlock()
	if h := w.local[at]; h != nil {
		return handlerTransport{server: w.server, handler: h}
	}
	return nil
}

// handlerTransport is an [http.RoundTripper] that calls a handler of this process.
type handlerTransport struct {
	server  *Server
	handler http.Handler
}

// RoundTrip implements [http.RoundTripper].
func (t handlerTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx := r.Context()
	remote := apart{ctx, klog.NewContext(context.Background(), klog.FromContext(ctx))}
	return t.server.roundTrip(r.WithContext(remote), http.HandlerFunc(t.serve), nil, false)
}

// apart is the context that a handler gets: it ends with the caller's but has none of its values except for the logger,
// as if a network were between the two. The reads of a webhook are not those of the reconcile whose write it reviews.
type apart struct {
	context.Context
	values context.Context
}

// Value implements [context.Context].
func (a apart) Value(key any) any { return a.values.Value(key) }

// serve has the handler answer. A panic breaks the connection, as in an HTTP server.
func (t handlerTransport) serve(w http.ResponseWriter, r *http.Request) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if err, ok := p.(error); !ok || !errors.Is(err, http.ErrAbortHandler) {
			klog.FromContext(r.Context()).Error(nil, "A webhook caused a panic", "path", r.URL.Path, "panic", p,
				"stack", string(debug.Stack()))
		}
		panic(http.ErrAbortHandler)
	}()
	t.handler.ServeHTTP(w, r)
}

// resolve returns the address of a Service: the one in the options, or else one of its endpoints.
//
// Source: k8s.io/apiserver v0.37.2 pkg/util/proxy/proxy.go ResolveEndpoint, ResolveCluster.
func (w *webhooks) resolve(ctx context.Context, s webhookclient.Service) (string, error) {
	if address := cmp.Or(w.services[s.Namespace+"/"+s.Name], w.services["*/"+s.Name]); address != "" {
		return address, nil
	}
	services := w.server.served.Load().resources[corev1.SchemeGroupVersion.WithResource("services")]
	service, err := find[*corev1.Service](services, "service", s.Namespace, s.Name)
	if err != nil {
		if apierrors.IsNotFound(err) {
			err = apierrors.NewNotFound(corev1.Resource("service"), s.Name)
		}
		return "", err
	}
	if service.Spec.Type == corev1.ServiceTypeExternalName {
		return net.JoinHostPort(service.Spec.ExternalName, strconv.Itoa(int(s.Port))), nil
	}
	for _, p := range service.Spec.Ports {
		if p.Port == s.Port {
			return w.endpoint(ctx, s, p.Name)
		}
	}
	return "", fmt.Errorf("no service port %d found for service %q", s.Port, s.Name)
}

// endpoint returns the address of an endpoint of a Service's port.
func (w *webhooks) endpoint(ctx context.Context, s webhookclient.Service, port string) (string, error) {
	none := apierrors.NewServiceUnavailable(fmt.Sprintf("no endpoints available for service %q", s.Name))
	gvr := discoveryv1.SchemeGroupVersion.WithResource("endpointslices")
	slices := w.server.served.Load().resources[gvr]
	if slices == nil {
		return "", none
	}
	of := registry.Selection{
		Namespace: s.Namespace, Labels: labels.SelectorFromSet(labels.Set{discoveryv1.LabelServiceName: s.Name}),
	}
	result, err := slices.List(ctx, registry.ListOptions{Selection: of})
	if err != nil {
		return "", err
	}
	for _, o := range result.Objects {
		slice := o.Object.(*discoveryv1.EndpointSlice)
		for _, p := range slice.Ports {
			if ptr.Deref(p.Name, "") != port || p.Port == nil {
				continue
			}
			for _, e := range slice.Endpoints {
				if ptr.Deref(e.Conditions.Ready, true) && len(e.Addresses) > 0 {
					return net.JoinHostPort(e.Addresses[0], strconv.Itoa(int(*p.Port))), nil
				}
			}
		}
	}
	return "", none
}
