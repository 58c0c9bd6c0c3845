package localapi

import (
	"math/rand/v2"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/flyball-dev/flyball/localapi/audit"
	"github.com/flyball-dev/flyball/localapi/auth"
	"github.com/flyball-dev/flyball/localapi/gate"
	"github.com/flyball-dev/flyball/localapi/internal/expressions"
	"github.com/flyball-dev/flyball/localapi/internal/resource"
	"github.com/flyball-dev/flyball/localapi/storage"
)

// Defaults of [Options].
const (
	DefaultTenant           = "default"
	DefaultHistoryLimit     = 20_000
	DefaultHistoryBytes     = 64 << 20
	DefaultBookmarkInterval = time.Minute
)

// Options configure a server. The zero value is an empty server in memory with the built-in types.
type Options struct {
	// Storage holds the objects. Nil means a new store in memory, which Close closes. The server does not close a store
	// that was given.
	Storage storage.Storage

	// Tenant is the owner of this server's objects in the storage; "" is DefaultTenant. Servers with different tenants
	// on one storage never see each other's objects. A storage may have at most one server per tenant at a time.
	Tenant string

	// definitions are the types to serve. Nil means the built-in types. Only tests set it.
	definitions []*resource.Definition

	// Scheme has the Go types, besides the built-in ones, of objects passed to [Server.Seed]. Nil is client-go's.
	Scheme *runtime.Scheme

	// Tokens maps bearer tokens to users. If there are any, a request over a socket that brings neither a token nor a
	// client certificate comes from system:anonymous: with RBAC it may do what roles allow, without RBAC it may read
	// health and version. If there are none, every client is the administrator.
	Tokens map[string]auth.User

	// AllowedHosts are further names of the server on a socket, besides localhost and the address that it listens on.
	// They have no port. The server refuses requests for any other name.
	AllowedHosts []string

	// RBAC lets users do only what the Roles and ClusterRoles bound to them allow. The server creates the roles that
	// every cluster has (cluster-admin, admin, edit, view, system:discovery and more). No user may grant more than they
	// have. Without RBAC, every known user may do everything.
	RBAC bool

	// MaxReads and MaxWrites bound the number of requests answered at once. Requests beyond the bound get status 429,
	// Too Many Requests. Watches do not count. 0 is no bound.
	MaxReads, MaxWrites int

	// WebhookServices are the addresses, HOST:PORT, at which webhooks of Services are called, by NAMESPACE/NAME of the
	// Service, or */NAME for all namespaces without an address of their own. The certificate there must be for
	// NAME.NAMESPACE.svc, as in a cluster. A Service that is not listed is called at the address of one of its
	// endpoints. [Server.HandleWebhook] comes first.
	WebhookServices map[string]string

	// CEL evaluates the validation rules of custom resources. Package localapi/cel has it: cel.New(). If it is nil,
	// rules are stored but not evaluated, and the server warns clients that create definitions with rules.
	CEL expressions.Evaluator

	// Gate is asked about every request and every watch frame. Nil lets everything pass.
	Gate gate.Gate

	// Audit records every request. Nil records none.
	Audit *audit.Log

	// HistoryLimit is the least number of past writes that are kept for watches and for lists at a past version; up to
	// twice as many are kept. 0 is DefaultHistoryLimit. A negative limit keeps all until [Server.Compact], whatever
	// HistoryBytes and HistoryAge are.
	HistoryLimit int

	// HistoryBytes bounds the past writes that are kept, besides HistoryLimit: by the bytes stored before and after
	// each. Up to a quarter more is kept. In memory, with what is decoded and encoded of them, they take about three
	// times as much. 0 is DefaultHistoryBytes. A negative value is no bound.
	HistoryBytes int64

	// HistoryAge bounds the age of the past writes that are kept, as a kube-apiserver does after five minutes. Those up
	// to twice as old are kept. 0 is no bound.
	HistoryAge time.Duration

	// BookmarkInterval is how often a watch that allows bookmarks gets one, if the version has risen. 0 is
	// DefaultBookmarkInterval. A negative interval sends none.
	BookmarkInterval time.Duration

	// Namespaces are created at start-up if they are missing, along with "default" and those that begin with "kube-".
	Namespaces []string

	// ClusterObjects creates the objects by which a cluster describes itself: the ServiceCIDR "kubernetes", an
	// APIService for every served version, and the ConfigMap in "kube-system" that says since when the use of tokens in
	// Secrets is noted.
	ClusterObjects bool

	// ServiceAccounts gives pods a volume with a token of their service account, and the account's image pull secrets.
	// A pod whose account does not exist is refused. For the account "default", which a controller creates, the server
	// waits for up to ten seconds. Without this option, a pod only gets the name of the account.
	ServiceAccounts bool

	// NoKubernetesService leaves out the Service "kubernetes" in "default", its Endpoints and its EndpointSlice.
	// (Nothing listens at the addresses that they name.)
	NoKubernetesService bool

	// Rand generates UIDs and the suffixes of generated names. Nil makes them unpredictable; a seeded source makes them
	// the same in every run. The server serializes its calls of Rand.
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

func (o Options) historyBytes() int64 {
	if o.HistoryBytes == 0 {
		return DefaultHistoryBytes
	}
	return max(o.HistoryBytes, 0)
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
