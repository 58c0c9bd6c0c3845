package controller

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/conditions"
	"github.com/flyball-dev/flyball/client/controllerutil"
	"github.com/flyball-dev/flyball/client/events"
	"github.com/flyball-dev/flyball/manager/ctrl"

	samplev1alpha1 "github.com/flyball-dev/flyball/cmd/flyball/scaffold/project/api/v1alpha1"
)

// gizmoFinalizer keeps a Gizmo that is being deleted until cleanUp has succeeded.
const gizmoFinalizer = "sample.flyball.example/gizmo-cleanup"

// GizmoReconciler reconciles Gizmos: it maintains a ConfigMap with the message of each.
type GizmoReconciler struct {
	client.Client
	Recorder events.Recorder
}

// The markers below become config/rbac/role.yaml by make manifests. The tests fail if they grant too little, and make
// role tells what they grant too much.
//
// +kubebuilder:rbac:groups=sample.flyball.example,resources=gizmos,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=sample.flyball.example,resources=gizmos/status,verbs=patch
// +kubebuilder:rbac:groups=sample.flyball.example,resources=gizmos/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;watch;create;update
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

// SetupWithManager adds the controller to a manager. It watches Gizmos, and the ConfigMaps that they own.
func (r *GizmoReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&samplev1alpha1.Gizmo{}).
		Owns(&corev1.ConfigMap{}).
		Named("gizmo").
		Complete(r)
}

// Reconcile moves the cluster towards what one Gizmo asks for. It is called again after an error, with increasing
// delays, and whenever the Gizmo or its ConfigMap changes.
func (r *GizmoReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var obj samplev1alpha1.Gizmo
	if err := r.Get(ctx, req.NamespacedName, &obj); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	deleting, err := controllerutil.Finalize(ctx, r, &obj, gizmoFinalizer, func(ctx context.Context) error {
		return r.cleanUp(ctx, &obj)
	})
	if deleting || err != nil {
		return ctrl.Result{}, err
	}
	status, err := controllerutil.NewPatchHelper(r, &obj)
	if err != nil {
		return ctrl.Result{}, err
	}
	err = r.apply(ctx, &obj)
	state, reason, message := conditions.IsReady, "Applied", "ConfigMap "+obj.Status.ConfigMap+" has the message"
	eventType := corev1.EventTypeNormal
	if err != nil {
		state, reason, message = conditions.IsReconciling, "ApplyFailed", err.Error()
		eventType = corev1.EventTypeWarning
	}
	if conditions.SetState(&obj.Status.Conditions, obj.Generation, state, reason, message) {
		r.Recorder.Event(&obj, eventType, reason, message)
	}
	return ctrl.Result{}, errors.Join(err, status.Patch(ctx, &obj))
}

// apply creates or updates the ConfigMap of a Gizmo. The ConfigMap is deleted with its owner.
func (r *GizmoReconciler) apply(ctx context.Context, obj *samplev1alpha1.Gizmo) error {
	object := metav1.ObjectMeta{Namespace: obj.Namespace, Name: obj.Name + "-gizmo"}
	configMap := &corev1.ConfigMap{ObjectMeta: object}
	if _, err := ctrl.CreateOrUpdate(ctx, r, configMap, func() error {
		configMap.Data = map[string]string{"message": obj.Spec.Message}
		return ctrl.SetControllerReference(obj, configMap, r.Scheme())
	}); err != nil {
		return err
	}
	obj.Status.ConfigMap = configMap.Name
	return nil
}

// cleanUp removes what a Gizmo has outside the cluster, which garbage collection does not reach. It may be called more
// than once.
func (r *GizmoReconciler) cleanUp(ctx context.Context, obj *samplev1alpha1.Gizmo) error {
	ctrl.LoggerFrom(ctx).V(2).Info("Nothing outside the cluster to clean up", "uid", obj.UID)
	return nil
}
