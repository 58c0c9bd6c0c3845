package integration

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"testing"
)

var controllers = suite{
	folders:  []string{"endpointslice", "endpoints", "garbagecollector", "deployment", "replicaset"},
	document: "../../docs/controllers.md",
}

// TestControllers runs Kubernetes' tests of controllers with ours, on its own API server.
func TestControllers(t *testing.T) {
	if os.Getenv("FLYBALL_INTEGRATION") == "" {
		t.Skip("make test-integration runs it")
	}
	b := newBuild(t, controllerEdits, map[string]string{"controllers/garbagecollector/has.go": has})
	controllers.run(t, func(t *testing.T, folder string) *exec.Cmd { return b.test(t, folder, "-timeout", "20m") })
}

const gc = "pkg/controller/garbagecollector/garbagecollector.go"

var controllerEdits = slices.Concat(
	first("pkg/controller/deployment/deployment_controller.go", "*DeploymentController", `
	o.Deployment.Workers = workers
	ours.Run(ctx, dc.client, "deployment-controller", o)
`),
	first("pkg/controller/replicaset/replica_set.go", "*ReplicaSetController", `
	o.ReplicaSet.Workers, o.ReplicaSet.Burst = workers, rsc.burstReplicas
	ours.Run(ctx, rsc.kubeClient, "replicaset-controller", o)
`),
	first("pkg/controller/endpoint/endpoints_controller.go", "*Controller", `
	o.Endpoints.Workers, o.Endpoints.BatchPeriod = workers, e.endpointUpdatesBatchPeriod
	ours.Run(ctx, e.client, "endpoints-controller", o)
`),
	first("pkg/controller/endpointslice/endpointslice_controller.go", "*Controller", `
	o.EndpointSlice.Workers, o.EndpointSlice.BatchPeriod = workers, c.endpointUpdatesBatchPeriod
	o.EndpointSlice.MaxEndpointsPerSlice = int(c.maxEndpointsPerSlice)
	ours.Run(ctx, c.client, "endpointslice-controller", o)
`),
	first("pkg/controller/endpointslicemirroring/endpointslicemirroring_controller.go", "*Controller", `
	o.EndpointSliceMirroring.Workers, o.EndpointSliceMirroring.BatchPeriod = workers, c.endpointUpdatesBatchPeriod
	o.EndpointSliceMirroring.MaxEndpointsPerSubset = int(c.maxEndpointsPerSubset)
	ours.Run(ctx, c.client, "endpointslice-mirroring-controller", o)
`),
	first(gc, "*GarbageCollector", `
	o.GarbageCollector.Workers, o.GarbageCollector.DiscoveryPeriod = workers, initialSyncTimeout
	gc.ours.Run(ctx, gc.kubeClient, "garbage-collector-controller", o)
`),
	[]edit{
		{gc, `type GarbageCollector struct \{\n`, "${0}\tours ours.Collector\n"},
		{gc, `(?m)^func \(gc .*\) Sync\(.*\{\n`, "${0}\t<-ctx.Done()\n"},
		{gc, `(?m)^func \(gc .*\) IsSynced\(.*\{\n`, "${0}\treturn gc.ours.Synced()\n"},
		{gc, `(?m)^func \(gc .*\) GraphHasUID\(.*\{\n`, "${0}\treturn gc.ours.Has(u)\n"},
	},
)

// first returns the edits that put statements first into a controller's Run. They run our controller until the context
// is done. With such a context, the rest of Run starts nothing, and ends what the constructor has started.
func first(path, receiver, statements string) []edit {
	return []edit{
		importing(path, "ours"),
		{
			path, `(?m)^func \(\w+ ` + regexp.QuoteMeta(receiver) + `\) Run\(.*\{\n`,
			"${0}\tvar o ours.Options" + statements,
		},
	}
}

// has is added to the package of our garbage collector, for tests that look into the real one.
const has = `package garbagecollector

import "k8s.io/apimachinery/pkg/types"

func (c *collector) Has(uid types.UID) bool {
	c.graph.mu.Lock()
	defer c.graph.mu.Unlock()
	return c.graph.nodes[uid] != nil
}
`
