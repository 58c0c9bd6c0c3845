package ephemeralcluster

import (
	"fmt"
	"slices"

	"github.com/flyball-dev/flyball/examples/operators/ci/api"
)

// Owner is a tenant of a Konflux cluster.
type Owner struct {
	Cluster string `json:"cluster"`
	Tenant  string `json:"tenant"`
}

// validate returns an error if ec may not have what it requests.
func (o *Options) validate(ec *api.EphemeralCluster) error {
	if ttl := ec.Spec.TimeToLive; ttl != nil && ttl.Duration <= 0 {
		return fmt.Errorf("timeToLive is %v: it must be positive", ttl.Duration)
	}
	test := ec.Spec.CIOperator.Test
	if test.ClusterClaim != nil {
		return nil // it takes a cluster from a pool, not an account
	}
	if test.ClusterProfile == "" {
		return fmt.Errorf("neither clusterProfile nor clusterClaim is set")
	}
	owners, found := o.Profiles[test.ClusterProfile]
	if !found {
		return fmt.Errorf("there is no cluster profile %q", test.ClusterProfile)
	}
	who := Owner{ec.Annotations[api.KonfluxClusterAnnotation], ec.Annotations[api.KonfluxTenantAnnotation]}
	if len(owners) == 0 || slices.Contains(owners, who) || who.Tenant != "" &&
		slices.Contains(o.PrivilegedTenants, who.Tenant) {
		return nil
	}
	return fmt.Errorf("tenant %q of cluster %q may not use cluster profile %q", who.Tenant, who.Cluster,
		test.ClusterProfile)
}
