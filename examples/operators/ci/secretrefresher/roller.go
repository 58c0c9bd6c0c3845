package secretrefresher

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/examples/operators/ci/fleet"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/manager/builder"
	"github.com/flyball-dev/flyball/manager/ctrl"
	"github.com/flyball-dev/flyball/reconcile/handler"
	"github.com/flyball-dev/flyball/reconcile/predicate"
)

// A Pod gets the pull secrets of its service account when it is created, and keeps them. The roller replaces the Pods
// of a Deployment, StatefulSet or DaemonSet when those secrets change.
const (
	// RollAnnotation with the value "true" on the Deployment, StatefulSet or DaemonSet asks for that. When it is set,
	// the Pods are replaced once, because it is not known which secrets they have.
	RollAnnotation = "ci.demo.io/roll-on-new-pull-secret"
	// PullSecretsAnnotation of a pod template names the pull secrets that its Pods were made for.
	PullSecretsAnnotation = "ci.demo.io/pull-secrets"
)

// owners are the kinds whose Pods are replaced when their template changes.
var owners = []owner{
	{"deployments", &appsv1.Deployment{}, &appsv1.DeploymentList{}},
	{"statefulsets", &appsv1.StatefulSet{}, &appsv1.StatefulSetList{}},
	{"daemonsets", &appsv1.DaemonSet{}, &appsv1.DaemonSetList{}},
}

// owner is a kind that owns Pods, directly or not.
type owner struct {
	resource string
	object   client.Object
	list     client.ObjectList
}

// templateOf returns the pod template of an object of owners.
func templateOf(obj any) *corev1.PodTemplateSpec {
	switch o := obj.(type) {
	case *appsv1.Deployment:
		return &o.Spec.Template
	case *appsv1.StatefulSet:
		return &o.Spec.Template
	case *appsv1.DaemonSet:
		return &o.Spec.Template
	default:
		panic(fmt.Sprintf("a %T has no pod template", obj))
	}
}

// accountIn returns the service account that the Pods of a template run as.
func accountIn(t *corev1.PodTemplateSpec) string {
	if name := t.Spec.ServiceAccountName; name != "" {
		return name
	}
	return "default"
}

// roller rolls the objects of one owner.
type roller struct {
	client.Client
	owner owner
	o     Options
}

// addRollers adds a controller for each owner to a cluster's manager.
func addRollers(c *fleet.Cluster, o Options) error {
	var wrong []error
	for _, owner := range owners {
		r := &roller{c.Client, owner, o}
		asked := predicate.Matching(func(obj informer.Object) bool {
			return slices.Contains(o.Namespaces, obj.GetNamespace()) && obj.GetAnnotations()[RollAnnotation] == "true"
		})
		wanted := predicate.Matching(
			func(obj informer.Object) bool { return o.wants(obj.GetNamespace(), obj.GetName()) },
		)
		wrong = append(wrong, ctrl.NewControllerManagedBy(c.Manager).Named(Name+"-"+owner.resource).
			For(owner.object, builder.WithPredicates(asked)).
			Watches(&corev1.ServiceAccount{}, handler.EnqueueMapped(r.ownersFor), builder.WithPredicates(wanted)).
			Complete(r))
	}
	return errors.Join(wrong...)
}

// ownersFor returns the objects whose Pods run as a service account.
func (r *roller) ownersFor(ctx context.Context, account informer.Object) (all []ctrl.Request) {
	list := r.owner.list.DeepCopyObject().(client.ObjectList)
	if err := r.List(ctx, list, client.InNamespace(account.GetNamespace()), client.ReadOnly); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot list what runs as a service account", "kind", r.owner.resource)
		return nil
	}
	_ = meta.EachListItem(list, func(item runtime.Object) error { // fails only if the function does
		obj := item.(client.Object)
		if obj.GetAnnotations()[RollAnnotation] == "true" && accountIn(templateOf(obj)) == account.GetName() {
			all = append(all, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(obj)})
		}
		return nil
	})
	return all
}

// Reconcile writes the names of the service account's pull secrets into the template. If they change, the Pods are
// replaced.
func (r *roller) Reconcile(ctx context.Context, q ctrl.Request) (ctrl.Result, error) {
	obj := r.owner.object.DeepCopyObject().(client.Object)
	if err := r.Get(ctx, q.NamespacedName, obj); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if obj.GetDeletionTimestamp() != nil || obj.GetAnnotations()[RollAnnotation] != "true" {
		return ctrl.Result{}, nil
	}
	template, account := templateOf(obj), &corev1.ServiceAccount{}
	key := client.ObjectKey{Namespace: q.Namespace, Name: accountIn(template)}
	if !r.o.wants(key.Namespace, key.Name) {
		return ctrl.Result{}, nil
	}
	if err := r.Get(ctx, key, account); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	var names []string
	for _, ref := range account.ImagePullSecrets {
		names = append(names, ref.Name)
	}
	slices.Sort(names)
	wanted := strings.Join(names, ",")
	if wanted == "" || template.Annotations[PullSecretsAnnotation] == wanted { // without secrets, wait for new ones
		return ctrl.Result{}, nil
	}
	base := obj.DeepCopyObject().(client.Object)
	metav1.SetMetaDataAnnotation(&template.ObjectMeta, PullSecretsAnnotation, wanted)
	if err := r.Patch(ctx, obj, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})); err != nil {
		return ctrl.Result{}, fmt.Errorf("roll: %w", err)
	}
	ctrl.LoggerFrom(ctx).Info("Rolled because of new pull secrets", "account", account.Name, "secrets", wanted)
	return ctrl.Result{}, nil
}

// minter gives service accounts the pull secrets that OpenShift would give them.
type minter struct {
	client.Client
	o Options
}

// AddMinter adds the minter to a cluster's manager.
func AddMinter(c *fleet.Cluster, o Options) error {
	return watch(c, MinterName, o).Complete(&minter{c.Client, o})
}

// Reconcile gives a pull secret to a service account without one. It uses the secret of a minter that died before it
// could refer to it, or creates a new one.
func (m *minter) Reconcile(ctx context.Context, q ctrl.Request) (ctrl.Result, error) {
	sa := &corev1.ServiceAccount{}
	if err := m.Get(ctx, q.NamespacedName, sa); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if len(sa.ImagePullSecrets) > 0 || sa.DeletionTimestamp != nil {
		return ctrl.Result{}, nil
	}
	all, err := secretsIn(ctx, m, q.Namespace)
	if err != nil {
		return ctrl.Result{}, err
	}
	name := leftOver(sa, all, time.Now())
	if name == "" {
		secret := secretFor(sa)
		if err := m.Create(ctx, secret); err != nil {
			return ctrl.Result{}, fmt.Errorf("create pull secret: %w", err)
		}
		name = secret.Name
	}
	sa.ImagePullSecrets = append(sa.ImagePullSecrets, corev1.LocalObjectReference{Name: name})
	if !slices.ContainsFunc(sa.Secrets, func(r corev1.ObjectReference) bool { return r.Name == name }) {
		sa.Secrets = append(sa.Secrets, corev1.ObjectReference{Name: name})
	}
	if err := m.Update(ctx, sa); err != nil {
		return ctrl.Result{}, fmt.Errorf("update service account: %w", err)
	}
	ctrl.LoggerFrom(ctx).Info("Gave service account a pull secret", "secret", name)
	return ctrl.Result{}, nil
}

// leftOver returns a pull secret of the service account that is not too old, or "" if there is none.
func leftOver(sa *corev1.ServiceAccount, all map[string]*corev1.Secret, now time.Time) (name string) {
	for _, s := range all {
		mine := s.Annotations[corev1.ServiceAccountUIDKey] == string(sa.UID) && s.Type == corev1.SecretTypeDockercfg &&
			s.DeletionTimestamp == nil
		if mine && now.Before(expiry(s)) && (name == "" || s.Name < name) {
			name = s.Name
		}
	}
	return name
}

// secretFor returns a new pull secret. Plain Kubernetes has no registry to use it with.
func secretFor(sa *corev1.ServiceAccount) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: sa.Namespace, GenerateName: sa.Name + "-dockercfg-",
			Annotations: map[string]string{
				corev1.ServiceAccountNameKey: sa.Name, corev1.ServiceAccountUIDKey: string(sa.UID),
			},
		},
		Type: corev1.SecretTypeDockercfg, Data: map[string][]byte{corev1.DockerConfigKey: []byte("{}")},
	}
}
