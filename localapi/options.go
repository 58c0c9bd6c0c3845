package localapi

import (
	"math/rand/v2"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/flyball-dev/flyball/localapi/audit"
	"github.com/flyball-dev/flyball/localapi/auth"
	"github.com/flyball-dev/flyball/localapi/gate"
	"github.com/flyball-dev/flyball/localapi/internal/resource"
	"github.com/flyball-dev/flyball/localapi/storage"
)

// Defaults of [Options].
const (
	DefaultTenant           = "default"
	DefaultHistoryLimit     = 20_000
	DefaultBookmarkInterval = time.Minute
)

// Options configure a server. The zero value is an empty server in memory with the built-in types.
type Options struct {
	// Storage holds the objects; nil: a new store in memory, which Close closes. A store that was given is left open.
	Storage storage.Storage

	// Tenant is whose objects in the storage these are; "" is DefaultTenant. Servers with different tenants on one
	// storage never see each other's objects. A storage has at most one server per tenant at a time.
	Tenant string

	// definitions are the types to serve; nil: the built-in ones. Tests set it.
	definitions []*resource.Definition

	// Scheme knows the Go types, beside the built-in ones, of objects that [Server.Seed] is given; nil is client-go's.
	Scheme *runtime.Scheme

	// Tokens are the users known by a bearer token. If there are any, requests over a socket that bring neither a token nor a
	// client certificate come from system:anonymous: with RBAC it may do what roles allow it, without it read health and version.
	// If there are none, everyone is the administrator.
	Tokens map[string]auth.User

	// AllowedHosts are names of the server over a socket, beside localhost and the address that it listens at, without a port.
	// Requests for any other name are refused.
	AllowedHosts []string

	// RBAC lets users do what Roles and ClusterRoles bound to them allow, and nothing else. The roles that every cluster
	// has (cluster-admin, admin, edit, view, system:discovery, …) are created. Nobody may grant more than they have.
	// Without it, everyone who is known may do everything.
	RBAC bool

	// MaxReads and MaxWrites bound the requests answered at once: more are told to come back later (429). Watches do not
	// count. 0 is no bound.
	MaxReads, MaxWrites int

	// Gate is asked about every request and every watch frame; nil: everything passes.
	Gate gate.Gate

	// Audit takes a record of every request; nil: none is made.
	Audit *audit.Log

	// HistoryLimit is the number of past writes that are kept for watches and lists at a past version, at least; up to
	// twice as many are. 0 is DefaultHistoryLimit; negative: all are kept, until [Server.Compact].
	HistoryLimit int

	// BookmarkInterval is how often a watch that allows bookmarks gets one if the version has risen. 0 is
	// DefaultBookmarkInterval; negative: never.
	BookmarkInterval time.Duration

	// Namespaces are created at the start, if missing, along with "default" and the "kube-" ones.
	Namespaces []string

	// NoKubernetesService leaves out the Service "kubernetes" in "default", its Endpoints and its EndpointSlice. (Nothing listens
	// at the addresses that they name.)
	NoKubernetesService bool

	// Rand makes UIDs and the ends of generated names; nil: unpredictable ones. A seeded source makes them the same in
	// every run. The server serialises its use.
	Rand rand.Source
}

func (o Options) scheme() *runtime.Scheme {
	if o.Scheme == nil {
		return clientscheme.Scheme
	}
	return o.Scheme
}

func (o Options) historyLimit() int64 {
	switch {
	case o.HistoryLimit == 0:
		return DefaultHistoryLimit
	case o.HistoryLimit < 0:
		return 0
	}
	return int64(o.HistoryLimit)
}

func (o Options) bookmarkInterval() time.Duration {
	switch {
	case o.BookmarkInterval == 0:
		return DefaultBookmarkInterval
	case o.BookmarkInterval < 0:
		return 0
	}
	return o.BookmarkInterval
}
