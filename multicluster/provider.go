package multicluster

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
)

// Provider tells a fleet which clusters there are.
type Provider interface {
	// Run announces clusters to fleet until ctx is done, and returns after everything that it started has ended.
	//
	// Clusters do not leave when Run returns: a provider that stops with the process, or loses the connection to its
	// source, does not take its clusters away. After an error Run is called again, with backoff, and announces its
	// clusters from the start. Nil means that the provider has no more to announce. When Run calls Synced, the clusters
	// leave that an earlier Run announced and this one did not.
	Run(ctx context.Context, fleet Fleet) error
	// Name names the provider in logs and metrics.
	Name() string
	// Health returns what the provider cannot announce, and why. It is shown in the readiness of the process without
	// making it unready.
	Health() error
}

// Fleet receives the announcements of a [Provider].
//
// Concurrency: all methods may be called at any time, and from several goroutines. None waits for a cluster. They do
// nothing after the Run that got the Fleet has returned.
type Fleet interface {
	// Join announces a cluster and its condition. The provider may call it as often as it likes:
	//
	//	a name that is new                         the cluster joins
	//	same identity and endpoint                 labels and readiness are taken over; the rest goes on undisturbed
	//	another Identity, or another Config        the old cluster is drained and is gone, then the new one joins
	//
	// Errors: an invalid name; no config; a name that another provider has announced.
	Join(a Announcement) error
	// Leave says that there is no cluster of that name any more. It is drained and then gone. Names that this provider
	// has not announced are ignored.
	Leave(name string)
	// Synced says that every cluster that exists at the moment has been announced. Every Run must call it once.
	// Readiness waits for it. The clusters leave that an earlier Run announced and this one did not.
	Synced()
}

// Announcement describes a cluster to the fleet.
type Announcement struct {
	// Name names the cluster in requests, metrics and logs. It is unique in the fleet. It is a path of DNS labels or
	// subdomains, joined by "/" ("eu/shop").
	Name string
	// Identity must change when the name stands for another cluster, or when the cluster is reached in another way that
	// Config does not show. It can be a UID, a hash of credentials, or both. A change keeps data read from the old
	// cluster, and writes to it, apart from the new one. Empty is an identity, too.
	Identity string
	// Config says how to reach the cluster. It is copied. It may be nil while NotReady is set. A change of its
	// Transport, Dial, Proxy or wrappers goes unnoticed, because functions cannot be compared.
	Config *rest.Config
	// Namespace restricts the caches of namespaced kinds to one namespace, for providers whose clusters are namespaces
	// of one server. It does not prevent requests for other namespaces; Config must do that. A change of Namespace
	// counts as a change of Config.
	Namespace string
	// Labels are the labels that filters select by; see [MatchLabels]. The map is copied.
	Labels map[string]string
	// NotReady says, in a few words for people, why the cluster cannot be used at the moment ("being provisioned").
	// Empty means that it can. A cluster that becomes not ready is drained, and joins anew later.
	NotReady string
}

// ErrNameTaken is returned by Join for a name that another provider has announced.
var ErrNameTaken = errors.New("another provider has announced a cluster of that name")

func (a *Announcement) validate() error {
	if a.Name == LocalCluster {
		return errors.New("the name is empty: that is the local cluster's")
	}
	for _, part := range strings.Split(a.Name, "/") {
		if wrong := validation.IsDNS1123Subdomain(part); len(wrong) > 0 {
			return fmt.Errorf("%q in the name: %s", part, wrong[0])
		}
	}
	if a.Config == nil && a.NotReady == "" {
		return errors.New("it is ready, but there is no config")
	}
	return nil
}
