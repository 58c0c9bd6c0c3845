package controllerruntime_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	appsv1apply "k8s.io/client-go/applyconfigurations/apps/v1"
	autoscalingv1apply "k8s.io/client-go/applyconfigurations/autoscaling/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

// deployment returns a Deployment in a namespace.
func deployment(namespace, name string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	d.Spec.Selector, d.Spec.Template.Labels = &metav1.LabelSelector{MatchLabels: labels}, labels
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "c", Image: "i"}}
	return d
}

// metadata returns the bare metadata of a ConfigMap.
func metadata(namespace, name string) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	m.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	return m
}

// anyMap returns a ConfigMap as an unstructured object.
func anyMap(namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

// TestSubResources uses the client of subresources, with and without objects of their own.
func TestSubResources(t *testing.T) {
	bothClients(t, client.CacheOptions{}, func(w *world, c client.Client, _ *weather) {
		d := deployment("a", "d")
		w.must(c.Create(w.ctx, d))
		replicas := func() int32 {
			w.lag()
			var got appsv1.Deployment
			w.must(c.Get(w.ctx, client.ObjectKeyFromObject(d), &got))
			return *got.Spec.Replicas
		}
		var scale autoscalingv1.Scale
		w.must(c.SubResource("scale").Get(w.ctx, d, &scale))
		scale.Spec.Replicas = 2
		w.must(c.SubResource("scale").Update(w.ctx, d, client.WithSubResourceBody(&scale)))
		if n := replicas(); n != 2 || scale.ResourceVersion == "" {
			w.t.Errorf("update: %d replicas", n)
		}
		nameless := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 3}}
		w.must(c.SubResource("scale").Update(w.ctx, d, client.WithSubResourceBody(nameless), client.FieldOwner("me")))
		if n := replicas(); n != 3 || nameless.Name != "d" {
			w.t.Errorf("update without a name: %d replicas, of %q", n, nameless.Name)
		}
		base := nameless.DeepCopy()
		nameless.Spec.Replicas = 4
		w.must(c.SubResource("scale").Patch(w.ctx, d, client.MergeFrom(base), client.WithSubResourceBody(nameless)))
		if n := replicas(); n != 4 {
			w.t.Errorf("patch: %d replicas", n)
		}
		w.must(
			c.SubResource("scale").Patch(w.ctx, d.DeepCopy(),
				client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":9}}`)), client.DryRunAll),
		)
		if n := replicas(); n != 4 {
			w.t.Errorf("a dry run: %d replicas", n)
		}
		body := autoscalingv1apply.Scale().WithName("d").WithNamespace("a").WithSpec(
			autoscalingv1apply.ScaleSpec().WithReplicas(5),
		)
		w.must(c.SubResource("scale").Apply(w.ctx, appsv1apply.Deployment("d", "a"), &client.SubResourceApplyOptions{
			SubResourceBody: body, ApplyOptions: client.ApplyOptions{FieldManager: "applier", Force: new(true)},
		}))
		if n := replicas(); n != 5 {
			w.t.Errorf("apply of a scale: %d replicas", n)
		}
		status := appsv1apply.Deployment("d", "a").WithStatus(appsv1apply.DeploymentStatus().WithReplicas(7))
		w.must(c.Status().Apply(w.ctx, status, client.FieldOwner("me"), client.ForceOwnership))
		w.lag()
		w.must(c.Get(w.ctx, client.ObjectKeyFromObject(d), d))
		if d.Status.Replicas != 7 || status.UID == nil {
			w.t.Errorf("apply of the status: %d replicas", d.Status.Replicas)
		}
		before := d.DeepCopy()
		d.Status.Replicas, d.Spec.Paused = 8, true
		w.must(c.Status().Patch(w.ctx, d, client.MergeFrom(before)))
		if d.Status.Replicas != 8 || d.Spec.Paused {
			w.t.Errorf("a patch of the status: %d replicas, paused %v", d.Status.Replicas, d.Spec.Paused)
		}
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "p"}}
		pod.Spec.Containers = d.Spec.Template.Spec.Containers
		w.must(c.Create(w.ctx, pod))
		w.must(
			c.SubResource("binding").Create(w.ctx, pod,
				&corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: "n"}}, client.FieldOwner("me")),
		)
		w.lag()
		w.must(c.Get(w.ctx, client.ObjectKeyFromObject(pod), pod))
		if pod.Spec.NodeName != "n" {
			w.t.Errorf("bound to %q", pod.Spec.NodeName)
		}
		w.must(c.SubResource("eviction").Create(w.ctx, pod, &policyv1.Eviction{}))
		w.lag()
		if err := c.Get(w.ctx, client.ObjectKeyFromObject(pod), pod); err == nil && pod.DeletionTimestamp == nil ||
			client.IgnoreNotFound(err) != nil {
			w.t.Errorf("evicted: %v", err)
		}
	})
}

// TestWritesOfRepresentations: typed and unstructured objects can be written; metadata can be patched and deleted, but
// not written.
func TestWritesOfRepresentations(t *testing.T) {
	bothClients(t, client.CacheOptions{Unstructured: true}, func(w *world, c client.Client, _ *weather) {
		u := anyMap("a", "u")
		w.must(unstructured.SetNestedField(u.Object, "v", "data", "k"))
		w.must(c.Create(w.ctx, u))
		w.must(unstructured.SetNestedField(u.Object, "w", "data", "k"))
		w.must(c.Update(w.ctx, u))
		base := u.DeepCopy()
		u.SetLabels(map[string]string{"x": "y"})
		w.must(c.Patch(w.ctx, u, client.MergeFrom(base)))
		ua := anyMap("a", "u")
		w.must(c.Apply(w.ctx, client.ApplyConfigurationFromUnstructured(ua), client.FieldOwner("me")))
		if ua.GetUID() != u.GetUID() {
			w.t.Error("the answer to an apply is not in the caller's object")
		}
		m := metadata("a", "u")
		if err := c.Create(w.ctx, metadata("a", "m")); err == nil {
			w.t.Error("metadata were created")
		}
		if err := c.Update(w.ctx, m); err == nil {
			w.t.Error("metadata were updated, and the rest is gone")
		}
		if err := c.Status().Update(w.ctx, m); err == nil {
			w.t.Error("metadata were a status")
		}
		before := m.DeepCopy()
		m.Annotations = map[string]string{"patched": "yes"}
		w.must(c.Patch(w.ctx, m, client.MergeFrom(before)))
		w.lag()
		var got corev1.ConfigMap
		w.must(c.Get(w.ctx, client.ObjectKey{Namespace: "a", Name: "u"}, &got))
		if got.Data["k"] != "w" || got.Labels["x"] != "y" || got.Annotations["patched"] != "yes" {
			w.t.Errorf("%+v", got)
		}
		//lint:ignore SA1019 Most operators apply by it.
		apply := client.Apply
		typed := &corev1.ConfigMap{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "t"},
		}
		w.must(c.Patch(w.ctx, typed, apply, client.FieldOwner("me"), client.ForceOwnership))
		w.must(
			c.DeleteAllOf(w.ctx, metadata("", ""), client.InNamespace("a"),
				client.MatchingFields{"metadata.name": "t"}, client.GracePeriodSeconds(0)),
		)
		w.lag()
		if err := c.Get(w.ctx, client.ObjectKeyFromObject(typed), typed); !apierrors.IsNotFound(err) {
			w.t.Errorf("all of one name deleted: %v", err)
		}
		w.must(
			c.DeleteAllOf(w.ctx, anyMap("", ""), client.InNamespace("a"),
				client.MatchingFieldsSelector{Selector: fields.OneTermNotEqualSelector("metadata.name", "u")}),
		)
		w.must(c.Delete(w.ctx, m))
		if err := c.Delete(w.ctx, u); !apierrors.IsNotFound(err) {
			w.t.Errorf("deleted twice: %v", err)
		}
		if gvk, err := c.GroupVersionKindFor(m); err != nil || gvk.Kind != "ConfigMap" {
			w.t.Errorf("kind %v, %v", gvk, err)
		}
	})
}

// TestDeleteAllInNamespaceWhereNoneIs: a namespace does not count for a kind without namespaces.
func TestDeleteAllInNamespaceWhereNoneIs(t *testing.T) {
	bothClients(t, client.CacheOptions{}, func(w *world, c client.Client, _ *weather) {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
		w.must(c.Create(w.ctx, node))
		w.must(c.DeleteAllOf(w.ctx, &corev1.Node{}, client.InNamespace("a")))
		w.lag()
		if err := c.Get(w.ctx, client.ObjectKeyFromObject(node), node); !apierrors.IsNotFound(err) {
			w.t.Errorf("all nodes deleted: %v", err)
		}
	})
}

// TestWritesWithoutAName: a write without a name changes no object, and above all not all of them: its URL is that of
// the collection.
func TestWritesWithoutAName(t *testing.T) {
	bothClients(t, client.CacheOptions{}, func(w *world, c client.Client, _ *weather) {
		w.must(c.Create(w.ctx, configMap("a", "x", nil)))
		nameless := configMap("a", "", nil)
		for what, err := range map[string]error{
			"delete":           c.Delete(w.ctx, nameless),
			"update":           c.Update(w.ctx, nameless),
			"patch":            c.Patch(w.ctx, nameless, client.RawPatch(types.MergePatchType, []byte("{}"))),
			"no namespace":     c.Update(w.ctx, configMap("", "x", nil)),
			"new, nowhere":     c.Create(w.ctx, configMap("", "x", nil)),
			"delete metadata":  c.Delete(w.ctx, metadata("a", "")),
			"delete, anything": c.Delete(w.ctx, anyMap("a", "")),
		} {
			if err == nil {
				w.t.Errorf("%s: no error", what)
			}
		}
		w.must(w.direct.Get(w.ctx, client.ObjectKey{Namespace: "a", Name: "x"}, &corev1.ConfigMap{}))
	})
}

// TestRawOptions: raw options are passed on, or overridden, as controller-runtime does.
func TestRawOptions(t *testing.T) {
	bothClients(t, client.CacheOptions{}, func(w *world, c client.Client, _ *weather) {
		owner := configMap("a", "owner", nil)
		w.must(
			c.Create(w.ctx, owner,
				&client.CreateOptions{Raw: &metav1.CreateOptions{FieldManager: "raw"}, FieldManager: "me"}),
		)
		if owner.ManagedFields[0].Manager != "me" {
			w.t.Errorf("owned by %s", owner.ManagedFields[0].Manager)
		}
		w.lag()
		w.must(
			c.Get(w.ctx, client.ObjectKeyFromObject(owner), owner,
				&client.GetOptions{Raw: &metav1.GetOptions{ResourceVersion: "1"}}),
		)
		w.must(
			c.List(w.ctx, &corev1.ConfigMapList{}, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: "1"}}),
		)
		w.must(c.Delete(w.ctx, owner, client.DryRunAll, &client.DeleteOptions{DisableReadYourWritesConsistency: true}))
		w.must(w.direct.Get(w.ctx, client.ObjectKeyFromObject(owner), owner))
		//lint:ignore SA1019 Operators may have it set.
		w.must(c.Delete(w.ctx, owner, &client.DeleteOptions{Raw: &metav1.DeleteOptions{OrphanDependents: new(true)}}))
		w.must(w.direct.Get(w.ctx, client.ObjectKeyFromObject(owner), owner))
		if len(owner.Finalizers) != 1 || owner.Finalizers[0] != metav1.FinalizerOrphanDependents {
			w.t.Errorf("finalizers %v", owner.Finalizers)
		}
	})
}

// TestKindsOfWrittenObjects: our client leaves the kind in a typed object that it wrote. controller-runtime's clears it
// after a create, and otherwise leaves it as it was.
func TestKindsOfWrittenObjects(t *testing.T) {
	bothClients(t, client.CacheOptions{}, func(w *world, c client.Client, _ *weather) {
		said := configMap("a", "x", nil)
		said.APIVersion, said.Kind = "v1", "ConfigMap"
		w.must(c.Create(w.ctx, said))
		if (said.Kind == "ConfigMap") != w.ours() {
			w.t.Errorf("created: kind %q", said.Kind)
		}
		unsaid := configMap("a", "x", nil)
		w.must(c.Update(w.ctx, unsaid))
		if (unsaid.Kind == "ConfigMap") != w.ours() {
			w.t.Errorf("updated: kind %q", unsaid.Kind)
		}
		unsaid.APIVersion, unsaid.Kind = "v1", "ConfigMap"
		w.must(c.Update(w.ctx, unsaid))
		if unsaid.Kind != "ConfigMap" {
			w.t.Errorf("updated: kind %q", unsaid.Kind)
		}
	})
}

// TestWarnings: the server's warnings go to controller-runtime's log.
func TestWarnings(t *testing.T) {
	bothCaches(t, cache.Options{}, nil, func(w *world) {
		var logged []string
		log := funcr.New(func(_, args string) { logged = append(logged, args) }, funcr.Options{})
		c, err := w.newClient()(w.api.RESTConfig(), client.Options{Cache: &client.CacheOptions{Reader: w.Cache}})
		w.must(err)
		w.start()
		u := anyMap("a", "x")
		u.Object["unheard"] = "of"
		w.must(c.Create(ctrllog.IntoContext(w.ctx, log), u, client.FieldValidation("Warn")))
		if !strings.Contains(fmt.Sprint(logged), "unheard") {
			w.t.Errorf("logged: %q", logged)
		}
	}, namespace("a"))
}

// TestLaggingReads: with DisableReadYourWritesConsistency reads show what the cache has.
func TestLaggingReads(t *testing.T) {
	bothClients(t, client.CacheOptions{EnableReadYourWritesConsistency: new(true)},
		func(w *world, c client.Client, sky *weather) {
			sky.set(time.Minute, false)
			w.must(c.Create(w.ctx, configMap("a", "x", nil)))
			ctx, cancel := context.WithTimeout(w.ctx, time.Second)
			defer cancel()
			if err := c.Get(ctx, client.ObjectKey{Namespace: "a", Name: "x"}, &corev1.ConfigMap{},
				client.DisableReadYourWritesConsistency); !apierrors.IsNotFound(err) {
				w.t.Errorf("get: %v", err)
			}
			var list corev1.ConfigMapList
			w.must(c.List(ctx, &list, client.InNamespace("a"), client.DisableReadYourWritesConsistency))
			if len(list.Items) != 0 {
				w.t.Errorf("%d items", len(list.Items))
			}
			w.must(c.Get(w.ctx, client.ObjectKey{Namespace: "a", Name: "x"}, &corev1.ConfigMap{}))
			synctest.Wait()
		})
}
