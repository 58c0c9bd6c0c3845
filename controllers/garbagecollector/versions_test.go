package garbagecollector_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/flyball-dev/flyball/localapi/gate"
	"github.com/flyball-dev/flyball/workqueue"
)

// The versions in which the kinds of these tests can be served; objects are stored in the first.
var versions = []string{"v1alpha2", "v1"}

var definitions = schema.GroupVersionResource{
	Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
}

// custom gives access to objects of any kind, the custom ones in group example.com.
type custom struct {
	*cluster
	api dynamic.Interface
}

func newCustom(c *cluster) *custom {
	return &custom{cluster: c, api: dynamic.NewForConfigOrDie(c.config)}
}

// serve creates or changes the definition of a kind, so that it is served in these versions.
func (c *custom) serve(kind string, served ...string) {
	c.t.Helper()
	plural := strings.ToLower(kind) + "s"
	var all []any
	for i, v := range versions {
		all = append(all, map[string]any{
			"name": v, "served": slices.Contains(served, v), "storage": i == 0,
			"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}},
		})
	}
	definition := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": plural + ".example.com"},
		"spec": map[string]any{
			"group": "example.com", "scope": "Namespaced", "versions": all,
			"names": map[string]any{"plural": plural, "singular": strings.ToLower(kind), "kind": kind},
		},
	}}
	_, err := c.api.Resource(definitions).Create(c.ctx, definition, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		var was *unstructured.Unstructured
		if was, err = c.api.Resource(definitions).Get(c.ctx, definition.GetName(), metav1.GetOptions{}); err == nil {
			was.Object["spec"] = definition.Object["spec"]
			_, err = c.api.Resource(definitions).Update(c.ctx, was, metav1.UpdateOptions{})
		}
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *custom) undefine(kind string) {
	c.t.Helper()
	if err := c.api.Resource(definitions).Delete(c.ctx, strings.ToLower(kind)+"s.example.com",
		metav1.DeleteOptions{}); err != nil {
		c.t.Fatal(err)
	}
}

// of returns the client for objects of a kind in namespace default.
func (c *custom) of(kind, version string) dynamic.ResourceInterface {
	resource := schema.GroupVersionResource{
		Group: "example.com", Version: version, Resource: strings.ToLower(kind) + "s",
	}
	if kind == "ConfigMap" {
		resource.Group = ""
	}
	return c.api.Resource(resource).Namespace("default")
}

func (c *custom) make(kind, version, name string, owners ...metav1.OwnerReference) metav1.OwnerReference {
	c.t.Helper()
	apiVersion := version
	if kind != "ConfigMap" {
		apiVersion = "example.com/" + version
	}
	obj := &unstructured.Unstructured{}
	obj.SetAPIVersion(apiVersion)
	obj.SetKind(kind)
	obj.SetName(name)
	obj.SetOwnerReferences(owners)
	made, err := c.of(kind, version).Create(c.ctx, obj, metav1.CreateOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	blocks := true
	return metav1.OwnerReference{
		APIVersion: apiVersion, Kind: kind, Name: name, UID: made.GetUID(), BlockOwnerDeletion: &blocks,
	}
}

func (c *custom) remove(kind, version, name string, policy metav1.DeletionPropagation) {
	c.t.Helper()
	if err := c.of(kind, version).Delete(c.ctx, name,
		metav1.DeleteOptions{PropagationPolicy: &policy}); err != nil {
		c.t.Fatal(err)
	}
}

// correct sets the version to now in all of an object's references to custom objects.
func (c *custom) correct(kind, version, name, now string) {
	c.t.Helper()
	for {
		obj, err := c.of(kind, version).Get(c.ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return
		}
		if err != nil {
			c.t.Fatal(err)
		}
		refs := obj.GetOwnerReferences()
		for i := range refs {
			if refs[i].Kind != "ConfigMap" {
				refs[i].APIVersion = "example.com/" + now
			}
		}
		obj.SetOwnerReferences(refs)
		if _, err = c.of(kind, version).Update(c.ctx, obj, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
			if err != nil && !apierrors.IsNotFound(err) {
				c.t.Fatal(err)
			}
			return
		}
	}
}

// rest returns the objects of the kinds as "name" or "name<owner", with a "!" behind those that are being deleted.
func (c *custom) rest(kinds map[string]string) []string {
	c.t.Helper()
	left := []string{}
	for kind, version := range kinds {
		list, err := c.of(kind, version).List(c.ctx, metav1.ListOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			c.t.Fatal(err)
		}
		for _, obj := range list.Items {
			s := obj.GetName()
			for _, ref := range obj.GetOwnerReferences() {
				s += "<" + ref.Name
			}
			if obj.GetDeletionTimestamp() != nil {
				s += "!"
			}
			left = append(left, s)
		}
	}
	slices.Sort(left)
	return left
}

// discovered waits until the collector has discovered which resources the server serves, and has done the work that
// follows.
func (c *custom) discovered() {
	time.Sleep(time.Minute)
	c.settle()
}

// The collector sees a child and its owner in v1alpha2. Then the server serves v1 instead, and the owner is deleted.
//
// Source: kubernetes issues 96650 and 102641
func TestKindChangesVersion(t *testing.T) {
	for _, policy := range []metav1.DeletionPropagation{
		metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan,
	} {
		for _, corrected := range []bool{false, true} {
			for _, undefined := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s,corrected=%v,undefined=%v", policy, corrected, undefined), func(t *testing.T) {
					inCluster(t, func(c *cluster) {
						testKindChangesVersion(newCustom(c), policy, corrected, undefined)
					})
				})
			}
		}
	}
}

func testKindChangesVersion(c *custom, policy metav1.DeletionPropagation, corrected, undefined bool) {
	c.serve("Gadget", "v1alpha2")
	owner := c.make("Gadget", "v1alpha2", "owner")
	c.make("Gadget", "v1alpha2", "child", owner)
	c.make("ConfigMap", "v1", "map", owner)
	c.discovered()
	c.serve("Gadget", "v1alpha2", "v1")
	c.discovered()
	c.serve("Gadget", "v1")
	c.discovered()
	if corrected {
		c.correct("Gadget", "v1", "child", "v1")
		c.correct("ConfigMap", "v1", "map", "v1")
	}
	c.remove("Gadget", "v1", "owner", policy)
	c.settle()
	if undefined {
		c.undefine("Gadget")
	}
	c.discovered()
	want := []string{}
	switch {
	case policy == metav1.DeletePropagationOrphan && undefined:
		want = []string{"map"}
	case policy == metav1.DeletePropagationOrphan:
		want = []string{"child", "map"}
	}
	if got := c.rest(map[string]string{"Gadget": "v1", "ConfigMap": "v1"}); !slices.Equal(got, want) {
		c.t.Errorf("left %v, want %v", got, want)
	}
	if health, note := c.gc.Health(), c.gc.Note(); health != nil || note != "" {
		c.t.Errorf("health %v, note %q", health, note)
	}
}

// An owner is deleted after its version is no longer served, but before the collector has discovered that. Its watch of
// the old version shows nothing. The collector must notice that the owner is gone. It must not mistake a version that
// is gone for an owner that is gone.
func TestOwnerGoesBetweenVersions(t *testing.T) {
	inCluster(t, func(c0 *cluster) {
		c := newCustom(c0)
		c.serve("Gadget", "v1alpha2")
		goes, stays := c.make("Gadget", "v1alpha2", "goes"), c.make("Gadget", "v1alpha2", "stays")
		c.make("ConfigMap", "v1", "of-goes", goes)
		c.make("ConfigMap", "v1", "of-stays", stays)
		one, other := c.make("ConfigMap", "v1", "one"), c.make("ConfigMap", "v1", "other")
		c.make("ConfigMap", "v1", "of-one", one, stays)
		c.make("ConfigMap", "v1", "of-two", other, stays)
		c.discovered()
		c.remove("ConfigMap", "v1", "one", metav1.DeletePropagationBackground)
		c.settle() // The collector has read the owner "stays" in the old version.
		c.serve("Gadget", "v1")
		c.remove("ConfigMap", "v1", "other", metav1.DeletePropagationBackground)
		c.settle() // It reads "stays" again.
		c.make("ConfigMap", "v1", "also-of-stays", stays)
		c.make("ConfigMap", "v1", "of-both", goes, stays)
		c.remove("Gadget", "v1", "goes", metav1.DeletePropagationBackground)
		c.discovered()
		want := []string{
			"also-of-stays<stays", "of-both<stays", "of-one<stays", "of-stays<stays", "of-two<stays", "stays",
		}
		if got := c.rest(map[string]string{"Gadget": "v1", "ConfigMap": "v1"}); !slices.Equal(got, want) {
			t.Errorf("left %v, want %v", got, want)
		}
	})
}

// An object with a reference that cannot be resolved stays. readyz and a metric report it until it is corrected.
func TestUnresolvedReferences(t *testing.T) {
	inCluster(t, func(c0 *cluster) {
		c := newCustom(c0)
		unknown := metav1.OwnerReference{APIVersion: "example.com/v7", Kind: "Gadget", Name: "g", UID: "no-such"}
		gone := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "gone", UID: "gone"}
		solid := c.make("ConfigMap", "v1", "solid")
		c.make("ConfigMap", "v1", "a", unknown)
		c.make("ConfigMap", "v1", "b", unknown, gone)
		c.make("ConfigMap", "v1", "c", unknown, gone, solid)
		c.discovered()
		kinds := map[string]string{"ConfigMap": "v1"}
		if got, want := c.rest(kinds), []string{"a<g", "b<g<gone", "c<g<solid", "solid"}; !slices.Equal(got, want) {
			t.Errorf("left %v, want %v", got, want)
		}
		note := c.gc.Note()
		for _, want := range []string{
			"Gadget.example.com default/g (UID no-such): get", "owner of ConfigMap default/", " and 2 more",
			"ConfigMap default/b (UID ", "the API server serves no version of the kind Gadget.example.com",
		} {
			if !strings.Contains(note, want) {
				t.Errorf("%q lacks %q", note, want)
			}
		}
		if err := c.gc.Health(); err != nil {
			t.Errorf("a reference made the process unready: %v", err)
		}
		if got := c.gauges["garbage_collector_unresolved_objects"](); got != 2 {
			t.Errorf("the metric is %v, want 2", got)
		}

		// The user corrects one reference: its owner does not exist.
		if _, err := c.of("ConfigMap", "v1").Patch(c.ctx, "b", types.JSONPatchType,
			[]byte(`[{"op":"remove","path":"/metadata/ownerReferences/0"}]`), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		c.settle()
		if got, want := c.rest(kinds), []string{"a<g", "c<g<solid", "solid"}; !slices.Equal(got, want) {
			t.Errorf("after the correction: left %v, want %v", got, want)
		}

		c.serve("Gadget", "v1")
		c.discovered()
		if got, want := c.rest(kinds), []string{"c<solid", "solid"}; !slices.Equal(got, want) {
			t.Errorf("after the definition: left %v, want %v", got, want)
		}
		if note, got := c.gc.Note(), c.gauges["garbage_collector_unresolved_objects"](); note != "" || got != 0 {
			t.Errorf("the note is %q, the metric %v", note, got)
		}
	})
}

// The definition of a kind is deleted before the collector can know whether the owner was. The collector names the
// child in its note, and does not delete it.
func TestDefinitionGoesUnseen(t *testing.T) {
	inCluster(t, func(c0 *cluster) {
		c := newCustom(c0)
		c.serve("Gadget", "v1alpha2")
		owner := c.make("Gadget", "v1alpha2", "owner")
		c.make("ConfigMap", "v1", "child", owner)
		root := c.make("ConfigMap", "v1", "root")
		c.make("Gadget", "v1alpha2", "leaf", root)
		c.discovered()
		c.serve("Gadget", "v1")
		c.undefine("Gadget")
		c.discovered()
		c.remove("ConfigMap", "v1", "root", metav1.DeletePropagationForeground) // does not wait for the leaf
		c.settle()
		if got := c.rest(map[string]string{"ConfigMap": "v1"}); !slices.Equal(got, []string{"child<owner"}) {
			t.Errorf("left %v, want the child", got)
		}
		if note := c.gc.Note(); !strings.Contains(note, "Gadget.example.com default/owner") {
			t.Errorf("note %q", note)
		}
		c.serve("Gadget", "v1")
		c.discovered()
		if got := c.rest(map[string]string{"ConfigMap": "v1"}); len(got) != 0 {
			t.Errorf("the kind is served again, but %v is left", got)
		}
	})
}

// References name a custom object in versions other than the one that the monitor reads.
func TestReferencesInAllVersions(t *testing.T) {
	inClusterBehind(t, gate.Funcs{}, func(*cluster) {}, func(c0 *cluster) {
		c := newCustom(c0)
		c.serve("Gadget", versions...)
		owner := c.make("Gadget", "v1", "owner")
		for _, version := range []string{"v1", "v1alpha2", "v0"} {
			owner.APIVersion = "example.com/" + version
			c.make("ConfigMap", "v1", "of-"+version, owner)
		}
		c.discovered()
		want := []string{"of-v0<owner", "of-v1<owner", "of-v1alpha2<owner", "owner"}
		if got := c.rest(map[string]string{"Gadget": "v1", "ConfigMap": "v1"}); !slices.Equal(got, want) {
			t.Errorf("left %v, want %v", got, want)
		}
		c.remove("Gadget", "v1alpha2", "owner", metav1.DeletePropagationForeground)
		c.settle()
		if got := c.rest(map[string]string{"Gadget": "v1", "ConfigMap": "v1"}); len(got) != 0 {
			t.Errorf("left %v", got)
		}
	})
}

// gauges are metrics that a test reads.
type gauges map[string]func() float64

func (g gauges) Gauge(name, _ string, value func() float64) { g[name] = value }

func (g gauges) NewQueueMetrics(string, func() workqueue.Stats) workqueue.Metrics { return nil }
