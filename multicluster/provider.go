package multicluster

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
)

// Provider tells a fleet which clusters there are. It may also have Name() string, for logs and metrics (else it is
// named by its type), and Health() error, which is shown in the readiness of the process without making it unready.
type Provider interface {
	// Run announces clusters to fleet until ctx is done, and returns when all that it started has ended.
	//
	// Returning does not make clusters leave: a provider that loses sight of its clusters, or stops with the process,
	// does not take them away. After an error it is run again, with backoff, and announces what there is from the
	// start; nil means that it has no more to say. The clusters that a provider announced before, and has not
	// announced anew when it calls Synced, leave.
	Run(ctx context.Context, fleet Fleet) error
}

// Fleet is what a [Provider] announces clusters to.
//
// Concurrency: all methods may be called at any time, and from several goroutines. None waits for a cluster. After
// the Run they were given to has returned they do nothing.
type Fleet interface {
	// Join says that there is a cluster, and how it is. It is called as often as the provider likes:
	//
	//	a name that is new                         the cluster joins
	//	same identity and endpoint                 labels and readiness are taken over; the rest goes on undisturbed
	//	another Identity, or another Config        the old cluster is drained and is gone, then the new one joins
	//
	// Errors: a name that cannot be one, no config, a name that another provider has announced.
	Join(a Announcement) error
	// Leave says that there is no cluster of that name (any more): it is drained, and then is gone. A name that was
	// not announced by this provider is ignored.
	Leave(name string)
	// Synced says that every cluster that there is at the moment has been announced. It is to be called once by every
	// Run, when that is so: readiness waits for it, and what an earlier Run had announced and this one has not
	// leaves.
	Synced()
}

// Announcement is what a provider says of a cluster.
type Announcement struct {
	// Name names the cluster in requests, metrics and logs. It is unique in the fleet, and a path of DNS labels or
	// subdomains ("eu/shop"): the parts are joined by "/".
	Name string
	// Identity changes when the name stands for another cluster, or is to be reached in another way that Config does
	// not show: a UID, a hash of credentials, or both. What is read about and written to the old one then never mixes
	// with the new. Empty is an identity, too.
	Identity string
	// Config says how the cluster is reached. Its Transport, Dial, Proxy and wrappers are not looked at to find out
	// whether it changed: functions cannot be compared. It is copied. It may be nil while NotReady.
	Config *rest.Config
	// Namespace restricts the caches of namespaced kinds to one namespace, where namespaces of one server are
	// clusters. It does not stop anybody from asking the server for more: that is up to Config. Another Namespace is
	// another Config.
	Namespace string
	// Labels are what clusters are selected by; see [MatchLabels]. The map is copied.
	Labels map[string]string
	// NotReady is why the cluster cannot be used at the moment, in a few words for people ("being provisioned").
	// Empty: it can. A cluster that becomes not ready is drained, and joins anew later.
	NotReady string
}

// ErrNameTaken is returned by Join for a name that another provider has announced.
var ErrNameTaken = errors.New("another provider has announced a cluster of that name")

// validate says what is wrong with an announcement.
func (a *Announcement) validate() error {
	if a.Name == LocalCluster {
		return errors.New("the name is empty: that is the local cluster's")
	}
	for _, part := range splitPath(a.Name) {
		if wrong := validation.IsDNS1123Subdomain(part); len(wrong) > 0 {
			return fmt.Errorf("%q in the name: %s", part, wrong[0])
		}
	}
	if a.Config == nil && a.NotReady == "" {
		return errors.New("it is ready, but there is no config")
	}
	return nil
}
