package controller

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/conditions"
	"github.com/flyball-dev/flyball/client/controllerutil"
	"github.com/flyball-dev/flyball/client/events"
	"github.com/flyball-dev/flyball/examples/operators/projects/api"
	"github.com/flyball-dev/flyball/examples/operators/projects/api/infrastructure"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/manager/ctrl"
	"github.com/flyball-dev/flyball/multicluster/providers"
	"github.com/flyball-dev/flyball/reconcile/handler"
)

// projectReconciler gives every Project a control plane, and deletes its content when the Project is deleted.
type projectReconciler struct {
	client.Client
	options  Options
	provider *providers.Projects
	recorder events.Recorder
}

// workers is how many Projects are reconciled at once. A control plane that does not answer blocks a worker for a
// while.
const workers = 16

func (r *projectReconciler) setup(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&api.Project{}).
		// Same name as the Project, whoever owns it.
		Watches(&infrastructure.ProjectControlPlane{}, handler.EnqueueObject[informer.Object]()).
		WithOptions(ctrl.ControllerOptions{Workers: workers}).
		Complete(r)
}

// +kubebuilder:rbac:groups=resourcemanager.miloapis.com,resources=projects,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=resourcemanager.miloapis.com,resources=projects/status,verbs=patch
// +kubebuilder:rbac:groups=infrastructure.miloapis.com,resources=projectcontrolplanes,verbs=list;watch;create;delete
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

// Reconcile implements ctrl.Reconciler.
func (r *projectReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	p := &api.Project{}
	if err := r.Get(ctx, request.NamespacedName, p); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	// Deletion comes first: an object that is being deleted takes no new finalizers.
	if p.DeletionTimestamp != nil {
		return r.cleanUp(ctx, p)
	}
	if before := p.DeepCopyObject().(*api.Project); controllerutil.AddFinalizer(p, api.Finalizer) {
		patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		if err := r.Patch(ctx, p, patch); err != nil {
			return ctrl.Result{}, fmt.Errorf("add the finalizer: %w", err)
		}
	}
	plane, err := r.plane(ctx, p)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("control plane: %w", err)
	}
	var unprepared error
	if owns(p, plane) && answers(plane) && !conditions.Is(p.Status.Conditions, api.Ready, metav1.ConditionTrue) {
		if unprepared = r.prepare(ctx, p, plane); unprepared != nil {
			ctrl.LoggerFrom(ctx).Info("Control plane cannot be prepared yet", "err", unprepared)
		}
	}
	now := readiness(p, plane, unprepared)
	changed, err := r.set(ctx, p, now)
	if err != nil {
		return ctrl.Result{}, err
	}
	if changed && now.Status == metav1.ConditionTrue {
		r.recorder.Eventf(p, corev1.EventTypeNormal, now.Reason, "%s", now.Message)
	}
	if unprepared != nil {
		return ctrl.Result{RequeueAfter: r.options.Poll}, nil
	}
	return ctrl.Result{}, nil // the next change of the Project or the control plane triggers another reconcile
}

// plane returns the control plane with the Project's name, which may belong to an earlier Project. If there is none, it
// creates one.
func (r *projectReconciler) plane(ctx context.Context, p *api.Project) (*infrastructure.ProjectControlPlane, error) {
	plane := &infrastructure.ProjectControlPlane{}
	err := r.Get(ctx, client.ObjectKey{Name: p.Name}, plane)
	if !apierrors.IsNotFound(err) {
		return plane, err
	}
	plane.Name = p.Name
	plane.Labels = map[string]string{api.ProjectNameLabel: p.Name, api.ProjectUIDLabel: string(p.UID)}
	if err := ctrl.SetControllerReference(p, plane, r.Scheme()); err != nil {
		return nil, err
	}
	return plane, r.Create(ctx, plane)
}

// prepare creates in a control plane what each one has. The control plane is not in the fleet yet, because that
// requires Ready.
func (r *projectReconciler) prepare(ctx context.Context, p *api.Project,
	plane *infrastructure.ProjectControlPlane,
) error {
	ctx, cancel := context.WithTimeout(ctx, r.options.RequestTimeout)
	defer cancel()
	config, err := r.configFor(p, plane)
	if err != nil {
		return err
	}
	c, err := client.New(config, client.Options{Scheme: r.Scheme()})
	if err != nil {
		return err
	}
	return prepare(ctx, c, p.Name, string(p.UID))
}

// configFor returns the configuration for the control plane, whether it is in the fleet or not.
func (r *projectReconciler) configFor(p *api.Project, plane *infrastructure.ProjectControlPlane) (*rest.Config, error) {
	var found runtime.Object = p
	if r.options.Discovery.Kind.Kind == "ProjectControlPlane" {
		found = plane
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(found)
	if err != nil {
		return nil, err
	}
	config, err := r.provider.ConfigFor(&unstructured.Unstructured{Object: content})
	if err != nil {
		return nil, err
	}
	config.Timeout = r.options.RequestTimeout
	config.QPS = -1 // Parallel is the limit
	return config, nil
}

// set writes a condition of a Project if it has changed.
func (r *projectReconciler) set(ctx context.Context, p *api.Project, c metav1.Condition) (changed bool, err error) {
	before := p.DeepCopyObject().(*api.Project)
	if !conditions.Set(&p.Status.Conditions, p.Generation, c) {
		return false, nil
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.Status().Patch(ctx, p, patch); err != nil {
		return false, fmt.Errorf("condition %s: %w", c.Type, err)
	}
	return true, nil
}
