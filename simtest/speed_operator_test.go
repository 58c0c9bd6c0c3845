package simtest

import (
	"context"
	"errors"
	"runtime/debug"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/manifest"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/cel"
	"github.com/flyball-dev/flyball/manager/ctrl"
	"github.com/flyball-dev/flyball/manager/webhook"
	"github.com/flyball-dev/flyball/manager/webhook/admission"
	"github.com/flyball-dev/flyball/manager/webhook/conversion"
)

// gizmo is the kind of the project that flyball init makes, by whose manifests this test goes, and gizmoBeta its other
// version.
type gizmo struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`
	Spec              gizmoSpec   `json:"spec"`
	Status            gizmoStatus `json:"status,omitzero"`
}

type gizmoBeta gizmo

type gizmoSpec struct {
	Message string `json:"message"`
}

type gizmoStatus struct {
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	ConfigMap  string             `json:"configMap,omitempty"`
}

type gizmoList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []gizmo `json:"items"`
}

func (g *gizmo) DeepCopyObject() runtime.Object {
	c := *g
	g.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	c.Status.Conditions = slices.Clone(g.Status.Conditions)
	return &c
}

func (g *gizmoBeta) DeepCopyObject() runtime.Object {
	return (*gizmoBeta)((*gizmo)(g).DeepCopyObject().(*gizmo))
}

func (l *gizmoList) DeepCopyObject() runtime.Object {
	c := *l
	c.Items = nil
	for i := range l.Items {
		c.Items = append(c.Items, *l.Items[i].DeepCopyObject().(*gizmo))
	}
	return &c
}

// Hub implements conversion.Hub.
func (*gizmo) Hub() {}

// ConvertTo implements conversion.Convertible.
func (g *gizmoBeta) ConvertTo(hub conversion.Hub) error {
	hub.(*gizmo).Spec, hub.(*gizmo).Status = g.Spec, g.Status
	return nil
}

// ConvertFrom implements conversion.Convertible.
func (g *gizmoBeta) ConvertFrom(hub conversion.Hub) error {
	g.Spec, g.Status = hub.(*gizmo).Spec, hub.(*gizmo).Status
	return nil
}

func gizmoScheme() *runtime.Scheme {
	s, group := runtime.NewScheme(), "sample.flyball.example"
	utilruntime.Must(clientscheme.AddToScheme(s))
	hub := schema.GroupVersion{Group: group, Version: "v1alpha1"}
	s.AddKnownTypeWithName(hub.WithKind("Gizmo"), &gizmo{})
	s.AddKnownTypeWithName(hub.WithKind("GizmoList"), &gizmoList{})
	s.AddKnownTypeWithName(schema.GroupVersion{Group: group, Version: "v1beta7"}.WithKind("Gizmo"), &gizmoBeta{})
	metav1.AddToGroupVersion(s, hub)
	return s
}

// gizmos keeps a ConfigMap for each gizmo.
type gizmos struct{ client.Client }

func (r *gizmos) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var g gizmo
	if err := r.Get(ctx, req.NamespacedName, &g); err != nil || g.DeletionTimestamp != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	before := g.DeepCopyObject().(client.Object)
	owned := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: g.Namespace, Name: g.Name + "-gizmo"}}
	if _, err := ctrl.CreateOrUpdate(ctx, r, owned, func() error {
		owned.Data = map[string]string{"message": g.Spec.Message}
		return ctrl.SetControllerReference(&g, owned, r.Scheme())
	}); err != nil {
		return ctrl.Result{}, err
	}
	g.Status.ConfigMap = owned.Name
	meta.SetStatusCondition(&g.Status.Conditions, metav1.Condition{
		Type: "Ready", Status: metav1.ConditionTrue, Reason: "Applied", ObservedGeneration: g.Generation,
	})
	return ctrl.Result{}, r.Status().Patch(ctx, &g, client.MergeFrom(before))
}

// Default implements webhook.Defaulter.
func (*gizmos) Default(_ context.Context, g *gizmo) error {
	metav1.SetMetaDataLabel(&g.ObjectMeta, "defaulted", "yes")
	return nil
}

// ValidateCreate implements webhook.Validator.
func (*gizmos) ValidateCreate(_ context.Context, g *gizmo) (admission.Warnings, error) {
	if g.Labels["defaulted"] == "" {
		return nil, errors.New("it was not defaulted")
	}
	return nil, nil
}

// ValidateUpdate implements webhook.Validator.
func (r *gizmos) ValidateUpdate(ctx context.Context, _, g *gizmo) (admission.Warnings, error) {
	return r.ValidateCreate(ctx, g)
}

// ValidateDelete implements webhook.Validator.
func (*gizmos) ValidateDelete(context.Context, *gizmo) (admission.Warnings, error) { return nil, nil }

// gizmoOperator is a scenario of an operator of a kind in two versions, whose webhooks convert, default and validate.
func gizmoOperator(t *testing.T) *Scenario {
	t.Helper()
	scheme, hooks := gizmoScheme(), webhook.Options{Port: -1} // Called directly, by no port.
	return &Scenario{
		Objects: gizmoManifests(t), Scheme: scheme, API: localapi.Options{CEL: cel.New()},
		Build: func(e *Env) (Program, error) {
			mgr, err := ctrl.NewManager(e.Config(), ctrl.Options{Scheme: scheme, Webhook: hooks})
			if err != nil {
				return nil, err
			}
			r := &gizmos{mgr.GetClient()}
			e.process.world.servers[""].api.HandleWebhook("system/webhook-service", mgr.GetWebhookServer())
			return mgr, errors.Join(
				ctrl.NewControllerManagedBy(mgr).For(&gizmo{}).Owns(&corev1.ConfigMap{}).Complete(r),
				ctrl.NewWebhookManagedBy(mgr).For(&gizmo{}).WithDefaulter(r).WithValidator(r).Complete(),
			)
		},
		Others: []func(*Env) (Program, error){GarbageCollector},
		Script: func(u *User) {
			g := &gizmoBeta{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "first"}}
			g.Spec.Message = "hello"
			u.Create(g)
			u.Settle()
			Update(u, g, func(g *gizmoBeta) { g.Spec.Message = "hello again" })
			u.Settle()
			u.Delete(g)
		},
	}
}

// gizmoManifests returns the definition of the kind, and the configurations of its webhooks.
func gizmoManifests(t *testing.T) (all []runtime.Object) {
	t.Helper()
	const config = "../cmd/flyball/scaffold/project/config/"
	files, err := manifest.ReadFiles([]string{
		config + "crd/bases", config + "crd/patches", config + "webhook/manifests.yaml",
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	definition, patch, hooks := files[0], files[1], files[2:]
	content, _, _ := unstructured.NestedMap(patch.Object, "spec", "conversion") // The patch has nothing else.
	if err := unstructured.SetNestedMap(definition.Object, content, "spec", "conversion"); err != nil {
		t.Fatal(err)
	}
	all = append(all, definition.Unstructured)
	for _, o := range hooks {
		all = append(all, o.Unstructured)
	}
	return all
}

// TestSpeedOfOperator measures the run without faults of an operator of a kind in two versions, with webhooks.
func TestSpeedOfOperator(t *testing.T) {
	if *speed == "" {
		t.Skip("measures only with -sim.speed")
	}
	defer debug.SetGCPercent(debug.SetGCPercent(gcPercent))
	c := newChecker(t, gizmoOperator(t), Options{})
	if !c.baseline() {
		t.Fatal(c.found)
	}
	c.logRuns()
}
