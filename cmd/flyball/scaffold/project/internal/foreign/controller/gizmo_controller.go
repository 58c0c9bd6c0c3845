package controller

import (
	"context"

	samplev1alpha1 "github.com/flyball-dev/flyball/cmd/flyball/scaffold/project/api/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/controllerutil"
	"github.com/flyball-dev/flyball/client/events"
	"github.com/flyball-dev/flyball/manager/ctrl"
)

// gizmoMessage is the annotation of Gizmos whose text becomes a ConfigMap.
const gizmoMessage = "annotation.flyball.example/message"

// GizmoReconciler reconciles Gizmos: it maintains a ConfigMap with the message of each that has one. Other controllers
// own the Gizmos themselves, so it does not write to them.
type GizmoReconciler struct {
	client.Client
	Recorder events.Recorder
}

// The markers below become config/rbac/role.yaml by make manifests. The tests fail if they grant too little, and make
// role tells what they grant too much.
//
// +kubebuilder:rbac:groups="sample.flyball.example",resources=gizmos,verbs=get;list;watch
// +kubebuilder:rbac:groups="sample.flyball.example",resources=gizmos/finalizers,verbs=update
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

// Reconcile moves the cluster towards what the annotation of one Gizmo asks for.
func (r *GizmoReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var obj samplev1alpha1.Gizmo
	if err := r.Get(ctx, req.NamespacedName, &obj); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	message, found := obj.Annotations[gizmoMessage]
	if !found || !obj.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	object := metav1.ObjectMeta{Namespace: obj.Namespace, Name: obj.Name + "-gizmo"}
	configMap := &corev1.ConfigMap{ObjectMeta: object}
	result, err := ctrl.CreateOrUpdate(ctx, r, configMap, func() error {
		configMap.Data = map[string]string{"message": message}
		return ctrl.SetControllerReference(&obj, configMap, r.Scheme())
	})
	if err == nil && result != controllerutil.OperationResultNone {
		r.Recorder.Event(&obj, corev1.EventTypeNormal, "Applied", "ConfigMap "+configMap.Name+" has the message")
	}
	return ctrl.Result{}, err
}
