package garbagecollector

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/klog/v2"
)

// defaultIgnored has the resources of events, which have no dependents, are many, and expire.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/garbagecollector/graph_builder.go, ignoredResources
var defaultIgnored = []schema.GroupResource{{Resource: "events"}, {Group: "events.k8s.io", Resource: "events"}}

// kinds has the kind of each resource that can be collected, in the version that the server prefers.
type kinds = map[schema.GroupResource]schema.GroupVersionKind

// deletable returns the resources that can be listed, watched and deleted, without the ignored ones.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/garbagecollector/garbagecollector.go, GetDeletableResources
func deletable(lists []*metav1.APIResourceList, ignored []schema.GroupResource) kinds {
	found := make(kinds)
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"delete", "list", "watch"}},
		lists) {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue // no client could use such a group version
		}
		for _, r := range list.APIResources {
			found[gv.WithResource(r.Name).GroupResource()] = gv.WithKind(r.Kind)
		}
	}
	for _, resource := range ignored {
		delete(found, resource)
	}
	return found
}

// merge returns the resources in now. For group versions whose discovery failed, it keeps those in before, because the
// objects of an aggregated API still exist while its server is down.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/garbagecollector/garbagecollector.go, Sync
func merge(before, now kinds, err error) kinds {
	failed, partial := discovery.GroupDiscoveryFailedErrorGroups(err)
	if !partial {
		return now
	}
	merged := maps.Clone(now)
	for resource, kind := range before {
		_, unknown := failed[kind.GroupVersion()]
		if _, found := now[resource]; unknown && !found {
			merged[resource] = kind
		}
	}
	return merged
}

// errNoResources means that the server is not ready: discovery returned nothing to collect.
var errNoResources = errors.New("discovery returned no deletable resources")

// firstRetryDelay is the delay after the first failure of discovery at the start. Each further failure doubles it.
const firstRetryDelay = time.Second

// discover asks the server for its resources, again and again until ctx is done, and starts and stops monitors. It
// calls found after each success. Health reports a failure until the next success.
func (c *collector) discover(ctx context.Context, found func()) {
	var known kinds
	wait := min(firstRetryDelay, c.options.DiscoveryPeriod)
	for {
		now, err := c.discoverOnce(ctx, known)
		if ctx.Err() != nil {
			return
		}
		c.lastDiscovery.Store(&discoveryResult{err})
		if err != nil {
			klog.FromContext(ctx).Error(err, "Failed to discover the deletable resources, will retry", "delay", wait)
		} else {
			known, wait = now, c.options.DiscoveryPeriod
			found()
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		wait = min(2*wait, c.options.DiscoveryPeriod)
	}
}

// discoveryResult is the outcome of the last attempt.
type discoveryResult struct{ err error }

// discoverOnce asks the server once, and sets the monitors if the resources have changed. It then queues the keys that
// wait for a kind to be served.
func (c *collector) discoverOnce(ctx context.Context, known kinds) (kinds, error) {
	lists, err := discovery.ToServerResourcesInterfaceWithContext(c.discovery).ServerPreferredResourcesWithContext(ctx)
	now := deletable(lists, c.options.Ignored)
	if len(now) == 0 {
		return nil, errors.Join(errNoResources, err)
	}
	now = merge(known, now, err)
	if err != nil {
		klog.FromContext(ctx).Info("Discovery failed for some groups", "err", err)
	}
	changed := !maps.Equal(known, now)
	if mapper, ok := c.remote.mapper.(meta.ResettableRESTMapper); ok && (changed || c.unresolved.count() > 0) {
		mapper.Reset()
	}
	if changed {
		klog.FromContext(ctx).V(2).Info("Deletable resources changed", "count", len(now), "before", len(known))
		if err := c.monitors.set(ctx, now); err != nil {
			return nil, fmt.Errorf("start monitors: %w", err)
		}
	}
	c.retryUnresolved()
	return now, nil
}
