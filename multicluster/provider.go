package multicluster

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
)

// Provider announces the clusters of a fleet.
type Provider interface {
	// Run announces clusters to fleet until ctx is done. It returns after everything that it started has ended.
	//
	// The clusters stay in the fleet when Run returns, so a provider that loses the connection to its source loses no
	// cluster. After an error, the fleet calls Run again, with backoff, and Run announces all its clusters anew. A
	// cluster that an earlier Run announced and this one did not leaves when Run calls Synced. A nil error means that
	// the provider has nothing more to announce.
	Run(ctx context.Context, fleet Fleet) error
	// Name names the provider in logs and metrics.
	Name() string
	// Health returns what the provider cannot announce, and why. /readyz shows the error, which does not make the
	// process unready.
	Health() error
}

// Fleet receives the announcements of a [Provider].
//
// Concurrency: all methods may be called from any goroutine, and none of them waits for a cluster. After the Run that
// received the Fleet has returned, they do nothing.
type Fleet interface {
	// Join announces a cluster and its condition. The provider may call it as often as it likes:
	//
	//	a new name                                 the cluster joins
	//	same Identity and Config                   the fleet updates labels and readiness, and work continues
	//	another Identity, or another Config        the old cluster is drained and gone before the new one joins
	//
	// Errors: an invalid name; no config; [ErrNameTaken].
	Join(a Announcement) error
	// Leave announces that the cluster of that name does not exist any more, so that it is drained and then gone. Leave
	// ignores names that this provider has not announced.
	Leave(name string)
	// Synced announces that Join has been called for every cluster that exists now. Clusters that an earlier Run
	// announced and this one did not leave. Every Run must call Synced once, because readiness waits for it.
	Synced()
}

// Announcement describes a cluster to the fleet.
type Announcement struct {
	// Name names the cluster in requests, metrics and logs, and is unique in the fleet. It is a path of DNS labels or
	// subdomains, joined by "/" ("eu/shop").
	Name string
	// Identity must change when the name stands for another cluster, or when the way to reach the cluster changes in a
	// manner that Config does not show. It can be a UID, a hash of credentials, or both; the empty string is a valid
	// identity, too. After a change, nothing that was read from the old cluster is used for the new one.
	Identity string
	// Config is how to reach the cluster. Join copies it. It may be nil while NotReady is set. The fleet does not
	// notice a change of its Transport, Dial, Proxy or wrappers, because functions cannot be compared.
	Config *rest.Config
	// Namespace restricts the caches of namespaced kinds to one namespace, for providers whose clusters are namespaces
	// of one server. It does not prevent requests for other namespaces; the credentials in Config must do that. A
	// change of Namespace counts as a change of Config.
	Namespace string
	// Labels are the labels that filters select by; see [MatchLabels]. Join copies the map.
	Labels map[string]string
	// NotReady is why the cluster cannot be used at the moment, in a few words for people ("being provisioned"). Empty
	// means that it can be used. A cluster that becomes not ready is drained, and joins again later.
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
