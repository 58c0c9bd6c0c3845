package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/flyball-dev/flyball/client/manifest"
	"github.com/flyball-dev/flyball/controllers"
	"github.com/flyball-dev/flyball/controllers/deployment"
	"github.com/flyball-dev/flyball/controllers/replicaset"
)

// kubeletName is the name of the fake kubelet among the names of controllers.
const kubeletName = "kubelet"

// handlers lists the controllers needed by kinds that have no effect by themselves. Controllers that Flyball does not
// have are named as in kube-controller-manager.
var handlers = map[schema.GroupKind][]string{
	{Kind: "Pod"}:                                           {kubeletName},
	{Kind: "PersistentVolumeClaim"}:                         {"persistentvolume-binder-controller"},
	{Group: "apps", Kind: "Deployment"}:                     {deployment.Name, replicaset.Name, kubeletName},
	{Group: "apps", Kind: "ReplicaSet"}:                     {replicaset.Name, kubeletName},
	{Group: "apps", Kind: "StatefulSet"}:                    {"statefulset-controller"},
	{Group: "apps", Kind: "DaemonSet"}:                      {"daemonset-controller"},
	{Group: "batch", Kind: "Job"}:                           {"job-controller"},
	{Group: "batch", Kind: "CronJob"}:                       {"cronjob-controller"},
	{Group: "policy", Kind: "PodDisruptionBudget"}:          {"disruption-controller"},
	{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}: {"horizontal-pod-autoscaler-controller"},
}

// definitions returns the CustomResourceDefinitions among the manifests, by the kinds that they define.
func definitions(all []manifest.Object) map[schema.GroupVersionKind]*unstructured.Unstructured {
	found := map[schema.GroupVersionKind]*unstructured.Unstructured{}
	for _, m := range all {
		if m.GroupVersionKind().GroupKind() != definitionKind {
			continue
		}
		group, _, _ := unstructured.NestedString(m.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(m.Object, "spec", "names", "kind")
		for version := range versionsOf(m.Unstructured) {
			found[schema.GroupVersionKind{Group: group, Version: version, Kind: kind}] = m.Unstructured
		}
	}
	return found
}

var definitionKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

// versionsOf returns the served versions of a definition, by name.
func versionsOf(definition *unstructured.Unstructured) map[string]map[string]any {
	found := map[string]map[string]any{}
	list, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	for _, v := range list {
		if version, ok := v.(map[string]any); ok && version["served"] == true {
			found[fmt.Sprint(version["name"])] = version
		}
	}
	return found
}

// named groups objects by a text about them.
type named map[string][]string

func (n named) add(about string, m manifest.Object) {
	n[about] = append(n[about], fmt.Sprintf("%s (%s)", m.GetName(), m.From))
}

// lines returns one line for each text, sorted.
func (n named) lines() []string {
	lines := make([]string, 0, len(n))
	for about, names := range n {
		lines = append(lines, about+": "+strings.Join(names, ", "))
	}
	slices.Sort(lines)
	return lines
}

// split separates the manifests whose kinds are served, or defined by another manifest, from the rest.
func (a *applier) split(all []manifest.Object) (known []manifest.Object, unknown named, err error) {
	unknown = named{}
	defined := definitions(all)
	for _, m := range all {
		kind := m.GroupVersionKind()
		_, err := a.mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if _, ok := defined[kind]; ok || err == nil {
			known = append(known, m)
			continue
		}
		if !meta.IsNoMatchError(err) {
			return nil, nil, fmt.Errorf("%s: find the kind %s: %w", m.From, kind.Kind, err)
		}
		unknown.add(fmt.Sprintf("%s of %s", kind.Kind, kind.GroupVersion()), m)
	}
	return known, unknown, nil
}

// unknownError returns the error for manifests of unknown kinds.
func unknownError(unknown named) error {
	return fmt.Errorf("nothing was applied, because these kinds are not known:\n  %s\nApply their definitions too, or "+
		"leave them out by --skip-unknown-kinds", strings.Join(unknown.lines(), "\n  "))
}

// unhandled returns the manifests of kinds that need a controller which this run does not have.
func (a *applier) unhandled(ctx context.Context, all []manifest.Object, o Options) (named, error) {
	found := named{}
	running, err := runningOf(o)
	if err != nil {
		return nil, err
	}
	defined := definitions(all)
	for _, m := range all {
		kind := m.GroupVersionKind()
		for _, handler := range handlers[kind.GroupKind()] {
			if !running[handler] {
				found.add(fmt.Sprintf("%s (no %s runs)", kind.Kind, handler), m)
				break
			}
		}
		definition := defined[kind]
		if definition == nil {
			if definition, err = a.storedDefinition(ctx, kind); err != nil {
				return nil, err
			}
		}
		if hasStatus(definition, kind.Version) {
			found.add(fmt.Sprintf("%s (no controller of %s runs)", kind.Kind, kind.Group), m)
		}
	}
	return found, nil
}

// runningOf returns the names of the controllers that a run has.
func runningOf(o Options) (map[string]bool, error) {
	running := map[string]bool{kubeletName: o.Kubelet}
	if len(o.Controllers) == 0 {
		return running, nil
	}
	enabled, err := controllers.Enabled(o.Controllers)
	for _, c := range enabled {
		running[c.Name] = true
	}
	return running, err
}

// storedDefinition returns the definition of a kind, or nil for a built-in kind.
func (a *applier) storedDefinition(ctx context.Context,
	kind schema.GroupVersionKind,
) (*unstructured.Unstructured, error) {
	if clientscheme.Scheme.Recognizes(kind) || kind.GroupKind() == definitionKind {
		return nil, nil
	}
	mapping, err := a.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, err
	}
	resource := schema.GroupVersionResource{
		Group: definitionKind.Group, Version: "v1",
		Resource: "customresourcedefinitions",
	}
	definition, err := a.client.Resource(resource).Get(ctx, mapping.Resource.GroupResource().String(),
		metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read the definition of %s: %w", kind.Kind, err)
	}
	return definition, nil
}

// hasStatus reports whether objects of a version have a status, which a controller has to fill in. Objects without one
// are plain data.
func hasStatus(definition *unstructured.Unstructured, version string) bool {
	if definition == nil {
		return false
	}
	_, found, _ := unstructured.NestedMap(versionsOf(definition)[version], "subresources", "status")
	return found
}

// unhandledError returns the error for manifests that --wait would wait for in vain.
func unhandledError(unhandled named) error {
	return errors.New("nothing was applied, because --wait would never end: no controller handles\n  " +
		strings.Join(unhandled.lines(), "\n  ") + "\nTo have them stored and not waited for, add --accept-unhandled")
}
