package localapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/internal/bodies"
	"github.com/flyball-dev/flyball/localapi/auth"
	"github.com/flyball-dev/flyball/localapi/internal/admission"
	"github.com/flyball-dev/flyball/localapi/internal/builtin"
	"github.com/flyball-dev/flyball/localapi/internal/codec"
	"github.com/flyball-dev/flyball/localapi/internal/handlers"
	"github.com/flyball-dev/flyball/localapi/internal/identity"
	"github.com/flyball-dev/flyball/localapi/internal/ranges"
	"github.com/flyball-dev/flyball/localapi/internal/rbac"
	"github.com/flyball-dev/flyball/localapi/internal/registry"
	"github.com/flyball-dev/flyball/localapi/internal/resource"
	"github.com/flyball-dev/flyball/localapi/internal/reviews"
	"github.com/flyball-dev/flyball/localapi/internal/tokens"
	"github.com/flyball-dev/flyball/localapi/storage"
	"github.com/flyball-dev/flyball/localapi/storage/memory"
)

// Server is an API server. All methods may be called concurrently.
type Server struct {
	handler *handlers.API
	env     *registry.Env

	// served holds what the server serves at present. Definitions of custom resources change it.
	served atomic.Pointer[catalog]
	custom *customTypes // nil: the server has no CustomResourceDefinitions

	registers bool // there is an APIService for each served version; set before the first request

	webhooks *webhooks
	policies *policies
	quota    builtin.Quota

	admin        auth.User       // of clients in this process that name no user
	scheme       *runtime.Scheme // Go types that clients have and the server does not
	allowedHosts []string        // see [Options.AllowedHosts]
	history      history
	compacting   atomic.Bool
	ownsStorage  bool

	// stopping is closed by Close. It ends watches and requests in flight.
	stopping  chan struct{}
	closeOnce sync.Once
	closeErr  error

	mu     sync.Mutex
	closed bool

	// open holds the requests in flight that came through the in-memory transport, and inFlight counts them. Neither
	// grows once closed is set.
	open     map[*response]bool
	inFlight sync.WaitGroup
}

// maxBodies bounds the bodies of all requests under way.
const maxBodies = 128 << 20

// New returns a server. It starts nothing: a server has no goroutine until a request arrives.
func New(o Options) (*Server, error) {
	o.Tenant = cmp.Or(o.Tenant, DefaultTenant)
	if err := storage.ValidateTenant(o.Tenant); err != nil {
		return nil, err
	}
	s := &Server{
		admin: auth.Admin().Known(), scheme: o.scheme(), allowedHosts: slices.Clone(o.AllowedHosts),
		history:  history{limit: o.historyLimit(), bytes: o.historyBytes(), age: o.HistoryAge},
		stopping: make(chan struct{}), open: map[*response]bool{},
	}
	var authorizer *rbac.Authorizer
	if o.RBAC {
		authorizer = &rbac.Authorizer{Roles: storedRoles{s}}
	}
	ids := identity.New(o.Rand)
	issuer := &tokens.Issuer{Object: s.coreObject, ID: ids.UID}
	schemeOf := newScheme
	if o.definitions == nil {
		schemeOf = builtInScheme
		reviewer := &reviews.Reviewer{Authorizer: authorizer, Tokens: o.Tokens, Issuer: issuer}
		o.definitions = append(defaultDefinitions(issuer, o.CEL), reviewer.Definitions()...)
	}
	store := o.Storage
	if store == nil {
		store, s.ownsStorage = memory.New(), true
	}
	scheme, err := schemeOf(o.definitions)
	if err != nil {
		return nil, err
	}
	s.env = &registry.Env{
		Store: store, Tenant: o.Tenant, Codec: codec.New(scheme), Managers: &registry.Managers{BuiltIn: builtInTypes},
		Allocator: ranges.New(), UID: ids.UID, Suffix: ids.Suffix, Written: s.compactIfDue,
	}
	s.webhooks, s.policies = newWebhooks(s, o, authorizer), newPolicies(s, o.CEL, authorizer)
	s.serveFixed(o.definitions)
	if s.custom != nil {
		s.custom.cel = o.CEL
	}
	s.handler = &handlers.API{
		Codec: s.env.Codec, Gate: o.Gate, Audit: o.Audit, Bodies: bodies.New(maxBodies),
		Managers: s.env.Managers,
		Admission: admission.Chain{
			&builtin.LimitRanger{Ranges: s.limitRanges}, s.podAdmission(o),
			&s.policies.mutating, &s.webhooks.mutating, &s.policies.permission, &s.policies.validating,
			&s.webhooks.validating, &s.quota,
		},
		BookmarkInterval: o.bookmarkInterval(), Stopping: s.stopping,
		Group: hasGroup(o.definitions),
		Access: handlers.Access{
			Tokens: o.Tokens, Issued: issued(issuer), Authorizer: authorizer, Reads: o.MaxReads,
			Writes: o.MaxWrites,
		},
		Resource: func(gvr schema.GroupVersionResource) *registry.Resource {
			s.compactIfOld() // There is no goroutine for it: a server without requests has no readers of its history.
			return s.served.Load().resources[gvr]
		},
		Other: http.HandlerFunc(
			func(w http.ResponseWriter, r *http.Request) { s.served.Load().discovery.ServeHTTP(w, r) },
		),
	}
	s.quota.Others, s.quota.Quotas, s.quota.Served = s.handler.Others(), s.quotas, s.namespaced
	err = errors.Join(s.loadCustomTypes(), s.webhooks.follow(), s.policies.follow(), s.followQuotas())
	if err != nil {
		return nil, err
	}
	return s, s.bootstrap(o)
}

func (s *Server) quotas(namespace string) ([]*corev1.ResourceQuota, error) {
	r := s.served.Load().resources[corev1.SchemeGroupVersion.WithResource("resourcequotas")]
	return all[*corev1.ResourceQuota](r, namespace)
}

// followQuotas has the quotas that exist enforced, and those that will.
func (s *Server) followQuotas() error {
	r := s.served.Load().resources[corev1.SchemeGroupVersion.WithResource("resourcequotas")]
	if r == nil {
		return nil
	}
	return errors.Join(s.quota.Start(context.Background()), follow(func() error {
		all, _, err := r.Objects.Snapshot()
		if err == nil {
			s.quota.InUse.Store(all.Len() > 0)
		}
		return err
	}, r))
}

// namespaced returns a version in which a namespaced resource is served.
func (s *Server) namespaced(gr schema.GroupResource) (schema.GroupVersionResource, bool) {
	r := s.anyVersion(gr)
	if r == nil || !r.Definition.Namespaced {
		return schema.GroupVersionResource{}, false
	}
	return r.Definition.GroupVersionResource(), true
}

func (s *Server) podAdmission(o Options) *builtin.PodAdmission {
	p := &builtin.PodAdmission{
		RuntimeClass: s.runtimeClass, PriorityClasses: s.priorityClasses, Suffix: s.env.Suffix,
	}
	if o.ServiceAccounts {
		p.ServiceAccount = s.serviceAccount
	}
	return p
}

func (s *Server) serviceAccount(namespace, name string) (*corev1.ServiceAccount, error) {
	const plural = "serviceaccounts"
	all := s.served.Load().resources[corev1.SchemeGroupVersion.WithResource(plural)]
	return find[*corev1.ServiceAccount](all, plural, namespace, name)
}

func (s *Server) runtimeClass(name string) (*nodev1.RuntimeClass, error) {
	const plural = "runtimeclasses"
	all := s.served.Load().resources[nodev1.SchemeGroupVersion.WithResource(plural)]
	return find[*nodev1.RuntimeClass](all, plural, "", name)
}

func (s *Server) priorityClasses() ([]*schedulingv1.PriorityClass, error) {
	const plural = "priorityclasses"
	return all[*schedulingv1.PriorityClass](
		s.served.Load().resources[schedulingv1.SchemeGroupVersion.WithResource(plural)], "")
}

func (s *Server) limitRanges(namespace string) ([]*corev1.LimitRange, error) {
	return all[*corev1.LimitRange](s.served.Load().resources[corev1.SchemeGroupVersion.WithResource("limitranges")],
		namespace)
}

// hasGroup returns a function that reports whether a group has Go types.
func hasGroup(definitions []*resource.Definition) func(string) bool {
	groups := map[string]bool{}
	for _, d := range definitions {
		if !codec.IsUnstructured(d.New()) {
			groups[d.GroupVersion.Group] = true
		}
	}
	return func(group string) bool { return groups[group] }
}

// Handler returns the API as an [http.Handler].
func (s *Server) Handler() http.Handler { return s.handler }

// Compact forgets the history before the present. Watches and lists at earlier versions then fail because their version
// has expired, as they do on a real server, which compacts every few minutes.
func (s *Server) Compact(ctx context.Context) error {
	current, _ := s.env.Store.Revision()
	return s.compact(ctx, current)
}

func (s *Server) compact(ctx context.Context, revision int64) error {
	for _, r := range s.served.Load().resources {
		if err := r.Objects.Sync(); err != nil {
			return err
		}
	}
	if err := s.env.Store.Compact(ctx, revision); err != nil {
		return fmt.Errorf("compact to %d: %w", revision, err)
	}
	for _, r := range s.served.Load().resources {
		r.Objects.Trim(revision)
	}
	return nil
}

// Close ends the watches and the contexts of requests, and waits for the requests in flight that came through the
// in-memory transport. Later requests fail. (The context of [Server.Serve] stops that server.)
func (s *Server) Close() error {
	s.closeOnce.Do(func() {
		s.mu.Lock()
		s.closed = true
		for request := range s.open {
			request.cancel()
		}
		s.mu.Unlock()
		close(s.stopping)
		s.inFlight.Wait()
		s.webhooks.clients.Close()
		if s.ownsStorage {
			s.closeErr = s.env.Store.Close()
		}
	})
	return s.closeErr
}

// enter registers a request in flight. It reports false if the server is closed.
func (s *Server) enter(request *response) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.inFlight.Add(1)
	s.open[request] = true
	return true
}

// leave ends what enter began.
func (s *Server) leave(request *response) {
	s.mu.Lock()
	delete(s.open, request)
	s.mu.Unlock()
	s.inFlight.Done()
}
