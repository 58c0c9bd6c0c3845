package localapi

import (
	"context"
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	appsapply "k8s.io/client-go/applyconfigurations/apps/v1"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	metaapply "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// goClients are the clients in Go that TestRecordTraffic records, by name. Each uses every verb that it has, with the
// options that people set.
var goClients = map[string]func(ctx context.Context, config *rest.Config, namespace string) error{
	"controller-runtime": useControllerRuntime,
	"typed-json": func(ctx context.Context, c *rest.Config, ns string) error {
		return useTyped(ctx, c, ns, "")
	},
	"typed-protobuf": func(ctx context.Context, c *rest.Config, ns string) error {
		return useTyped(ctx, c, ns, runtime.ContentTypeProtobuf)
	},
	"dynamic":  useDynamic,
	"metadata": useMetadata,
}

// website is the custom resource of the recordings.
type website struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              websiteSpec   `json:"spec,omitempty"`
	Status            websiteStatus `json:"status,omitempty"`
}

type websiteSpec struct {
	Domain   string `json:"domain,omitempty"`
	Replicas *int32 `json:"replicas,omitempty"`
}

type websiteStatus struct {
	Replicas int32  `json:"replicas,omitempty"`
	URL      string `json:"url,omitempty"`
}

func (w *website) DeepCopyObject() runtime.Object {
	c := *w
	w.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	return &c
}

type websiteList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []website `json:"items"`
}

func (l *websiteList) DeepCopyObject() runtime.Object {
	c := *l
	c.Items = append([]website(nil), l.Items...)
	return &c
}

// groupOf is the API group of the custom resource in a namespace of a recording.
func groupOf(namespace string) schema.GroupVersion {
	return schema.GroupVersion{Group: strings.ReplaceAll(namespace, "-", ".") + ".example.com", Version: "v1"}
}

func deployment(namespace, name string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: podSpec()},
		},
	}
}

func podSpec() corev1.PodSpec {
	return corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "image:1"}}}
}

func configMap(namespace, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": "x"}},
		Data:       map[string]string{"k": "v"},
	}
}

func pod(namespace, name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": "x"}},
		Spec:       podSpec(),
	}
}

// calls collects the errors of calls that should succeed, and of those that should not.
type calls []error

func (s *calls) ok(what string, err error) {
	if err != nil {
		*s = append(*s, fmt.Errorf("%s: %w", what, err))
	}
}

func (s *calls) fails(what string, err error) {
	if err == nil {
		*s = append(*s, fmt.Errorf("%s: no error", what))
	}
}

func useControllerRuntime(ctx context.Context, config *rest.Config, ns string) error {
	gv := groupOf(ns)
	scheme := runtime.NewScheme()
	if err := clientscheme.AddToScheme(scheme); err != nil {
		return err
	}
	scheme.AddKnownTypeWithName(gv.WithKind("Website"), &website{})
	scheme.AddKnownTypeWithName(gv.WithKind("WebsiteList"), &websiteList{})
	metav1.AddToGroupVersion(scheme, gv)
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	var s calls
	site := func(name string) *website {
		return &website{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, Labels: map[string]string{"app": "x"}},
			Spec:       websiteSpec{Domain: "a.example"},
		}
	}
	generic := func(name string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"domain": "u.example"}}}
		u.SetGroupVersionKind(gv.WithKind("Website"))
		u.SetNamespace(ns)
		u.SetName(name)
		u.SetLabels(map[string]string{"app": "x"})
		return u
	}
	partial := func(name string) *metav1.PartialObjectMetadata {
		p := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
		p.SetGroupVersionKind(gv.WithKind("Website"))
		return p
	}
	for _, make := range []func(name string) client.Object{
		func(name string) client.Object { return site(name) },
		func(name string) client.Object { return generic("u-" + name) },
		func(name string) client.Object { return configMap(ns, name) },
		func(name string) client.Object { return deployment(ns, name) },
	} {
		a := make("a")
		what := func(verb string) string { return fmt.Sprintf("%s %T", verb, a) }
		s.ok(what("create"), c.Create(ctx, a, client.FieldOwner("author")))
		s.fails(what("create again"), c.Create(ctx, make("a")))
		s.ok(what("dry-run create"), c.Create(ctx, make("dry"), client.DryRunAll, client.FieldValidation("Strict")))
		s.ok(what("get"), c.Get(ctx, client.ObjectKeyFromObject(a), a))
		s.fails(what("get none"), c.Get(ctx, client.ObjectKey{Namespace: ns, Name: "none"}, make("none")))
		controllerutil.AddFinalizer(a, "example.com/finalizer")
		s.ok(what("update"), c.Update(ctx, a))
		stale := a.DeepCopyObject().(client.Object)
		a.SetAnnotations(map[string]string{"note": "1"})
		s.ok(what("update"), c.Update(ctx, a, client.FieldOwner("author"), client.DryRunAll))
		s.ok(what("update"), c.Update(ctx, a))
		stale.SetAnnotations(map[string]string{"note": "2"})
		s.fails(what("stale update"), c.Update(ctx, stale))
		old := a.DeepCopyObject().(client.Object)
		a.SetLabels(map[string]string{"app": "y"})
		s.ok(what("merge patch"), c.Patch(ctx, a, client.MergeFrom(old)))
		old = a.DeepCopyObject().(client.Object)
		a.SetLabels(map[string]string{"app": "x"})
		s.ok(what("locked merge patch"),
			c.Patch(ctx, a, client.MergeFromWithOptions(old, client.MergeFromWithOptimisticLock{}),
				client.FieldOwner("other")))
		s.fails(what("stale merge patch"),
			c.Patch(ctx, a,
				client.RawPatch(types.MergePatchType,
					[]byte(`{"metadata":{"resourceVersion":"`+old.GetResourceVersion()+`","labels":{"app":"z"}}}`))))
		s.ok(what("JSON patch"),
			c.Patch(ctx, a,
				client.RawPatch(types.JSONPatchType,
					[]byte(`[{"op":"add","path":"/metadata/annotations/json","value":"1"}]`))))
		s.ok(what("delete with a finalizer"),
			c.Delete(ctx, a, client.PropagationPolicy(metav1.DeletePropagationForeground)))
		s.ok(what("get"), c.Get(ctx, client.ObjectKeyFromObject(a), a))
		a.SetFinalizers(nil)
		s.ok(what("drop the finalizer"), c.Update(ctx, a))
		b := make("b")
		s.ok(what("create"), c.Create(ctx, b))
		uid, version := b.GetUID(), b.GetResourceVersion()
		wrong := types.UID("11111111-1111-1111-1111-111111111111")
		s.fails(what("delete another"), c.Delete(ctx, b, client.Preconditions{UID: &wrong}))
		s.ok(what("dry-run delete"), c.Delete(ctx, b, client.DryRunAll))
		s.ok(what("delete"),
			c.Delete(ctx, b, client.Preconditions{UID: &uid, ResourceVersion: &version}, client.GracePeriodSeconds(0)))
		s.fails(what("delete again"), c.Delete(ctx, b))
		s.ok(what("create"), c.Create(ctx, make("c")))
		s.ok(what("create"), c.Create(ctx, make("d")))
		s.ok(what("delete all"),
			c.DeleteAllOf(ctx, make("any"), client.InNamespace(ns), client.MatchingLabels{"app": "x"},
				client.PropagationPolicy(metav1.DeletePropagationBackground)))
	}

	w := site("status")
	s.ok("create", c.Create(ctx, w))
	w.Status.URL = "https://a.example"
	s.ok("update status", c.Status().Update(ctx, w))
	old := w.DeepCopyObject().(client.Object)
	w.Status.URL = "https://b.example"
	s.ok("patch status", c.Status().Patch(ctx, w, client.MergeFrom(old), client.FieldOwner("author")))
	s.ok("apply",
		c.Apply(ctx, client.ApplyConfigurationFromUnstructured(generic("applied")), client.FieldOwner("author"),
			client.ForceOwnership))
	conflicting := generic("applied")
	conflicting.Object["spec"] = map[string]any{"domain": "other.example"}
	s.fails("conflicting apply",
		c.Apply(ctx, client.ApplyConfigurationFromUnstructured(conflicting), client.FieldOwner("other")))
	s.ok("apply over it",
		c.Apply(ctx, client.ApplyConfigurationFromUnstructured(conflicting), client.FieldOwner("other"),
			client.ForceOwnership))
	s.ok("get metadata", c.Get(ctx, client.ObjectKey{Namespace: ns, Name: "status"}, partial("status")))
	metas := &metav1.PartialObjectMetadataList{}
	metas.SetGroupVersionKind(gv.WithKind("WebsiteList"))
	s.ok("list metadata", c.List(ctx, metas, client.InNamespace(ns)))
	s.ok("patch metadata",
		c.Patch(ctx, partial("status"),
			client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"meta":"1"}}}`))))
	var sites websiteList
	s.ok("list", c.List(ctx, &sites, client.InNamespace(ns), client.Limit(1)))
	s.ok("list on", c.List(ctx, &sites, client.InNamespace(ns), client.Limit(1), client.Continue(sites.Continue)))
	s.ok("list by field", c.List(ctx, &sites, client.InNamespace(ns), client.MatchingFields{"metadata.name": "status"}))
	scale := &autoscalingv1.Scale{}
	s.ok("get scale", c.SubResource("scale").Get(ctx, w, scale))
	scale.Spec.Replicas = 3
	s.ok("update scale", c.SubResource("scale").Update(ctx, w, client.WithSubResourceBody(scale)))
	s.ok("patch scale",
		c.SubResource("scale").Patch(ctx, w, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":2}}`))))
	s.ok("delete metadata", c.Delete(ctx, partial("applied")))

	d := deployment(ns, "web")
	s.ok("create", c.Create(ctx, d))
	before := d.DeepCopy()
	d.Spec.Template.Spec.Containers[0].Image = "image:2"
	d.Spec.Template.Spec.Containers = append(d.Spec.Template.Spec.Containers,
		corev1.Container{Name: "side", Image: "image:1"})
	s.ok("strategic patch", c.Patch(ctx, d, client.StrategicMergeFrom(before)))
	d.Status.ObservedGeneration = d.Generation
	s.ok("update status", c.Status().Update(ctx, d))
	_, err = controllerutil.CreateOrUpdate(ctx, c, d, func() error { d.Labels["made"] = "yes"; return nil })
	s.ok("create or update", err)
	made := configMap(ns, "made")
	_, err = controllerutil.CreateOrPatch(ctx, c, made, func() error {
		made.Data = map[string]string{"k": "v2"}
		return controllerutil.SetControllerReference(d, made, scheme)
	})
	s.ok("create or patch", err)
	p := pod(ns, "p")
	s.ok("create pod", c.Create(ctx, p))
	p.Status.Phase = corev1.PodRunning
	s.ok("pod status", c.Status().Update(ctx, p))
	s.ok("evict", c.SubResource("eviction").Create(ctx, p, &policyv1.Eviction{DeleteOptions: &metav1.DeleteOptions{}}))
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "sa"}}
	s.ok("create", c.Create(ctx, account))
	s.ok("token", c.SubResource("token").Create(ctx, account, &authenticationv1.TokenRequest{}))
	watch, err := c.Watch(ctx, &corev1.ConfigMapList{}, client.InNamespace(ns), client.MatchingLabels{"app": "x"})
	if err == nil {
		watch.Stop()
	}
	s.ok("watch", err)
	return errors.Join(s...)
}

func useTyped(ctx context.Context, config *rest.Config, ns, contentType string) error {
	config.ContentType = contentType
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	var s calls
	maps := c.CoreV1().ConfigMaps(ns)
	a, err := maps.Create(ctx, configMap(ns, "a"),
		metav1.CreateOptions{FieldManager: "author", FieldValidation: "Warn"})
	s.ok("create", err)
	_, err = maps.Create(ctx, configMap(ns, "dry"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	s.ok("dry-run create", err)
	_, err = maps.Create(ctx, configMap(ns, "Bad_Name"), metav1.CreateOptions{})
	s.fails("bad name", err)
	_, err = maps.Get(ctx, "a", metav1.GetOptions{ResourceVersion: "0"})
	s.ok("get", err)
	a.Data["k"] = "2"
	updated, err := maps.Update(ctx, a,
		metav1.UpdateOptions{FieldManager: "author", DryRun: []string{metav1.DryRunAll}})
	s.ok("dry-run update", err)
	updated, err = maps.Update(ctx, a, metav1.UpdateOptions{FieldManager: "author"})
	s.ok("update", err)
	_, err = maps.Update(ctx, a, metav1.UpdateOptions{})
	s.fails("stale update", err)
	for _, p := range []struct {
		kind types.PatchType
		body string
	}{
		{types.MergePatchType, `{"data":{"m":"1","k":null}}`},
		{types.StrategicMergePatchType, `{"metadata":{"labels":{"s":"1"}}}`},
		{
			types.JSONPatchType,
			`[{"op":"test","path":"/data/m","value":"1"},{"op":"replace","path":"/data/m","value":"2"}]`,
		},
	} {
		_, err = maps.Patch(ctx, "a", p.kind, []byte(p.body), metav1.PatchOptions{FieldManager: "author"})
		s.ok(string(p.kind), err)
	}
	apply := coreapply.ConfigMap("applied",
		ns).WithLabels(map[string]string{"app": "x"}).WithData(map[string]string{"k": "v"})
	_, err = maps.Apply(ctx, apply, metav1.ApplyOptions{FieldManager: "author"})
	s.ok("apply", err)
	_, err = maps.Apply(ctx, apply.WithData(map[string]string{"k": "w"}), metav1.ApplyOptions{FieldManager: "other"})
	s.fails("conflicting apply", err)
	_, err = maps.Apply(ctx, apply, metav1.ApplyOptions{FieldManager: "other", Force: true})
	s.ok("forced apply", err)
	list, err := maps.List(ctx, metav1.ListOptions{LabelSelector: "app in (x, y),!none", Limit: 1})
	s.ok("list", err)
	_, err = maps.List(ctx, metav1.ListOptions{LabelSelector: "app in (x, y),!none", Limit: 1, Continue: list.Continue})
	s.ok("list on", err)
	_, err = maps.List(ctx,
		metav1.ListOptions{
			FieldSelector: "metadata.name!=a", ResourceVersion: updated.ResourceVersion,
			ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
		})
	s.ok("list from", err)
	timeout := int64(30)
	watch, err := maps.Watch(ctx,
		metav1.ListOptions{
			ResourceVersion: updated.ResourceVersion, AllowWatchBookmarks: true,
			TimeoutSeconds: &timeout,
		})
	if err == nil {
		watch.Stop()
	}
	s.ok("watch", err)
	yes := true
	watch, err = maps.Watch(ctx,
		metav1.ListOptions{
			SendInitialEvents: &yes, AllowWatchBookmarks: true,
			ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
		})
	if err == nil {
		watch.Stop()
	}
	s.ok("watch-list", err)

	deployments := c.AppsV1().Deployments(ns)
	d, err := deployments.Create(ctx, deployment(ns, "web"), metav1.CreateOptions{})
	s.ok("create deployment", err)
	d.Status.Replicas, d.Status.ObservedGeneration = 1, 1
	_, err = deployments.UpdateStatus(ctx, d, metav1.UpdateOptions{})
	s.ok("update status", err)
	scale, err := deployments.GetScale(ctx, "web", metav1.GetOptions{})
	s.ok("get scale", err)
	scale.Spec.Replicas = 2
	_, err = deployments.UpdateScale(ctx, "web", scale, metav1.UpdateOptions{})
	s.ok("update scale", err)
	_, err = deployments.Apply(ctx,
		appsapply.Deployment("applied", ns).WithSpec(appsapply.DeploymentSpec().WithReplicas(1).
			WithSelector(metaapply.LabelSelector().WithMatchLabels(map[string]string{"app": "applied"})).
			WithTemplate(coreapply.PodTemplateSpec().WithLabels(map[string]string{"app": "applied"}).
				WithSpec(
					coreapply.PodSpec().WithContainers(coreapply.Container().WithName("c").WithImage("image:1")),
				))),
		metav1.ApplyOptions{FieldManager: "author"})
	s.ok("apply deployment", err)

	pods := c.CoreV1().Pods(ns)
	for _, name := range []string{"bound", "evicted", "deleted"} {
		_, err = pods.Create(ctx, pod(ns, name), metav1.CreateOptions{})
		s.ok("create pod", err)
	}
	s.ok("bind",
		pods.Bind(ctx,
			&corev1.Binding{
				ObjectMeta: metav1.ObjectMeta{Name: "bound"},
				Target:     corev1.ObjectReference{Kind: "Node", Name: "n1"},
			}, metav1.CreateOptions{}))
	s.ok("evict", pods.EvictV1(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "evicted", Namespace: ns}}))
	grace := int64(0)
	policy := metav1.DeletePropagationOrphan
	s.ok("delete pod", pods.Delete(ctx, "deleted", metav1.DeleteOptions{GracePeriodSeconds: &grace}))
	s.ok("delete bound pod", pods.Delete(ctx, "bound", *metav1.NewDeleteOptions(5)))

	leases := c.CoordinationV1().Leases(ns)
	holder := "me"
	lease, err := leases.Create(ctx,
		&coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: "l"},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder},
		}, metav1.CreateOptions{})
	s.ok("create lease", err)
	_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
	s.ok("update lease", err)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "sa"}}
	_, err = c.CoreV1().ServiceAccounts(ns).Create(ctx, account, metav1.CreateOptions{})
	s.ok("create account", err)
	_, err = c.CoreV1().ServiceAccounts(ns).CreateToken(ctx, "sa", &authenticationv1.TokenRequest{},
		metav1.CreateOptions{})
	s.ok("token", err)
	_, err = c.CoreV1().Events(ns).Create(ctx, &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: "e.1", Namespace: ns}, Reason: "Tested", Message: "it was", Type: "Normal",
		InvolvedObject: corev1.ObjectReference{Kind: "ConfigMap", Namespace: ns, Name: "a"},
	}, metav1.CreateOptions{})
	s.ok("event", err)
	s.ok("delete",
		maps.Delete(ctx, "a",
			metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(a.UID)), PropagationPolicy: &policy}))
	s.ok("delete what waits for its orphans", maps.Delete(ctx, "a", metav1.DeleteOptions{}))
	s.ok("delete all", maps.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "app=x"}))
	return errors.Join(s...)
}

func useDynamic(ctx context.Context, config *rest.Config, ns string) error {
	gv := groupOf(ns)
	c, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	var s calls
	sites := c.Resource(gv.WithResource("websites")).Namespace(ns)
	object := func(name string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": gv.String(), "kind": "Website",
			"metadata": map[string]any{"name": name, "labels": map[string]any{"app": "x"}},
			"spec":     map[string]any{"domain": "a.example"},
		}}
	}
	a, err := sites.Create(ctx, object("a"), metav1.CreateOptions{FieldManager: "author", FieldValidation: "Strict"})
	s.ok("create", err)
	unknown := object("unknown")
	unknown.Object["spec"].(map[string]any)["unknown"] = true
	_, err = sites.Create(ctx, unknown, metav1.CreateOptions{FieldValidation: "Strict"})
	s.fails("strict create", err)
	a.Object["status"] = map[string]any{"url": "https://a.example"}
	a, err = sites.UpdateStatus(ctx, a, metav1.UpdateOptions{})
	s.ok("update status", err)
	a.SetLabels(map[string]string{"app": "y"})
	_, err = sites.Update(ctx, a, metav1.UpdateOptions{})
	s.ok("update", err)
	_, err = sites.Patch(ctx, "a", types.MergePatchType, []byte(`{"status":{"url":"x"}}`), metav1.PatchOptions{},
		"status")
	s.ok("patch status", err)
	_, err = sites.Apply(ctx, "applied", object("applied"), metav1.ApplyOptions{FieldManager: "author", Force: true})
	s.ok("apply", err)
	status := object("applied")
	status.Object = map[string]any{
		"apiVersion": gv.String(), "kind": "Website",
		"metadata": map[string]any{"name": "applied"}, "status": map[string]any{"url": "u"},
	}
	_, err = sites.ApplyStatus(ctx, "applied", status, metav1.ApplyOptions{FieldManager: "author"})
	s.ok("apply status", err)
	_, err = sites.List(ctx, metav1.ListOptions{LabelSelector: "app"})
	s.ok("list", err)
	_, err = sites.Get(ctx, "a", metav1.GetOptions{}, "scale")
	s.ok("get scale", err)
	watch, err := sites.Watch(ctx, metav1.ListOptions{})
	if err == nil {
		watch.Stop()
	}
	s.ok("watch", err)
	background := metav1.DeletePropagationBackground
	s.ok("delete", sites.Delete(ctx, "a", metav1.DeleteOptions{PropagationPolicy: &background}))
	s.ok("delete all", sites.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}))
	return errors.Join(s...)
}

func useMetadata(ctx context.Context, config *rest.Config, ns string) error {
	typed, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	var s calls
	for _, name := range []string{"a", "b"} {
		_, err := typed.CoreV1().ConfigMaps(ns).Create(ctx, configMap(ns, name), metav1.CreateOptions{})
		s.ok("create", err)
	}
	c, err := metadata.NewForConfig(config)
	if err != nil {
		return err
	}
	maps := c.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace(ns)
	a, err := maps.Get(ctx, "a", metav1.GetOptions{})
	s.ok("get", err)
	_, err = maps.List(ctx, metav1.ListOptions{Limit: 500})
	s.ok("list", err)
	watch, err := maps.Watch(ctx, metav1.ListOptions{AllowWatchBookmarks: true})
	if err == nil {
		watch.Stop()
	}
	s.ok("watch", err)
	_, err = maps.Patch(ctx, "a", types.MergePatchType, []byte(`{"metadata":{"finalizers":["example.com/f"]}}`),
		metav1.PatchOptions{})
	s.ok("patch", err)
	foreground := metav1.DeletePropagationForeground
	s.ok("delete",
		maps.Delete(ctx, "a",
			metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &a.UID}, PropagationPolicy: &foreground}))
	_, err = maps.Patch(ctx, "a", types.JSONPatchType, []byte(`[{"op":"remove","path":"/metadata/finalizers"}]`),
		metav1.PatchOptions{})
	s.ok("drop the finalizers", err)
	s.ok("delete all", maps.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "app=x"}))
	return errors.Join(s...)
}
