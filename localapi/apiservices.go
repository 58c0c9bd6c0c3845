package localapi

import (
	"context"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/localapi/internal/customresource"
	"github.com/flyball-dev/flyball/localapi/internal/registry"
)

// automanaged labels the APIServices that the server makes: those of the types that it always serves with "onstart",
// and those of custom resources with "true".
const automanaged = "kube-aggregator.kubernetes.io/automanaged"

// groupPriorities order the groups that every cluster has; those of custom resources have a priority of 1000.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controlplane/apiserver/aggregator.go, cmd/kube-apiserver/app/aggregator.go.
var groupPriorities = map[string]int64{
	"": 18000, "apiregistration.k8s.io": 18000, "apps": 17800, "events.k8s.io": 17750, "authentication.k8s.io": 17700,
	"authorization.k8s.io": 17600, "autoscaling": 17500, "batch": 17400, "certificates.k8s.io": 17300,
	"networking.k8s.io": 17200, "policy": 17100, "rbac.authorization.k8s.io": 17000, "storage.k8s.io": 16800,
	"apiextensions.k8s.io": 16700, "admissionregistration.k8s.io": 16700, "scheduling.k8s.io": 16600,
	"coordination.k8s.io": 16500, "node.k8s.io": 16300, "discovery.k8s.io": 16200, "resource.k8s.io": 16200,
	"flowcontrol.apiserver.k8s.io": 16100, "storagemigration.k8s.io": 15800,
}

// versionPriorities are those that are not 15, or 100 for custom resources.
var versionPriorities = map[schema.GroupVersion]int64{
	{Version: "v1"}: 1, {Group: "autoscaling", Version: "v2"}: 30, {Group: "resource.k8s.io", Version: "v1"}: 21,
	{Group: "flowcontrol.apiserver.k8s.io", Version: "v1"}: 21,
}

// registerVersions makes an APIService for every version that the server serves, and removes those of custom resources
// that are no longer served. Others stay as they are.
//
// Source: k8s.io/kube-aggregator v0.37.2 pkg/controllers/autoregister/autoregister_controller.go.
func (s *Server) registerVersions(ctx context.Context) error {
	r := s.resourceOfKind(customresource.APIService)
	if r == nil {
		return nil
	}
	served := map[string]*unstructured.Unstructured{}
	for gvr := range s.served.Load().resources {
		if service := versionService(gvr.GroupVersion()); gvr.Group != customresource.APIService.Group {
			served[service.GetName()] = service
		}
	}
	for _, name := range slices.Sorted(maps.Keys(served)) {
		if err := s.ensure("", served[name]); err != nil {
			return err
		}
	}
	all, err := r.List(ctx, registry.ListOptions{})
	if err != nil {
		return fmt.Errorf("list APIServices: %w", err)
	}
	for _, o := range all.Objects {
		if name := o.Meta.GetName(); o.Meta.GetLabels()[automanaged] == "true" && served[name] == nil {
			if _, _, err := r.Delete(ctx, "", name, metav1.DeleteOptions{}, nil); err != nil {
				return fmt.Errorf("delete APIService %s: %w", name, err)
			}
		}
	}
	return nil
}

// versionService returns the APIService of a version that this server serves.
func versionService(gv schema.GroupVersion) *unstructured.Unstructured {
	group, version, managed := int64(1000), int64(100), "true"
	if priority, ok := groupPriorities[gv.Group]; ok {
		group, version, managed = priority, 15, "onstart"
	}
	if priority, ok := versionPriorities[gv]; ok {
		version = priority
	}
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"version": gv.Version, "groupPriorityMinimum": group, "versionPriority": version,
	}}}
	if gv.Group != "" {
		u.Object["spec"].(map[string]any)["group"] = gv.Group
	}
	u.SetGroupVersionKind(customresource.APIService)
	u.SetName(gv.Version + "." + gv.Group)
	u.SetLabels(map[string]string{automanaged: managed})
	return u
}
