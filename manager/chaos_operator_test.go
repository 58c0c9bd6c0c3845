package manager_test

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/controllerutil"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/manager/builder"
	"github.com/flyball-dev/flyball/reconcile"
)

const (
	chaosFinalizer = "example.com/children"
	// chaosGenerates is the start of the names of parents whose children have generated names.
	chaosGenerates = "generated"
)

// chaosParent returns a ReplicaSet. It wants a number of children, and has a status with a subresource.
func chaosParent(name string, children int32) *appsv1.ReplicaSet {
	labels := map[string]string{"app": name}
	p := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	p.Spec.Replicas, p.Spec.Selector = &children, &metav1.LabelSelector{MatchLabels: labels}
	p.Spec.Template.Labels = labels
	p.Spec.Template.Spec.Containers = []corev1.Container{{Name: "c", Image: "i"}}
	return p
}

// chaosOperator creates and deletes Secrets, so that each parent has as many children as it wants.
type chaosOperator struct{ *client.Cluster }

// chaosControllers adds to a manager the operator, and a second controller that reads the operator's results.
func chaosControllers(m *manager.Manager) error {
	operator := chaosOperator{m.GetClient()}
	err := builder.ControllerManagedBy(m).Named("operator").For(&appsv1.ReplicaSet{}).Owns(&corev1.Secret{}).
		WithOptions(reconcile.Options[reconcile.Request]{Workers: 2}).Complete(
		reconcile.Func[reconcile.Request](operator.reconcile),
	)
	if err != nil {
		return err
	}
	return builder.ControllerManagedBy(m).Named("mirror").For(&appsv1.ReplicaSet{}).Owns(&corev1.Secret{}).Owns(
		&corev1.ConfigMap{},
	).
		Complete(reconcile.Func[reconcile.Request](operator.mirror))
}

func (o chaosOperator) children(ctx context.Context, parent reconcile.Request) (corev1.SecretList, error) {
	var children corev1.SecretList
	err := o.List(ctx, &children, client.InNamespace(parent.Namespace), client.MatchingLabels{"of": parent.Name})
	slices.SortFunc(children.Items, func(a, b corev1.Secret) int { return strings.Compare(a.Name, b.Name) })
	return children, err
}

func (o chaosOperator) reconcile(ctx context.Context, key reconcile.Request) (reconcile.Result, error) {
	parent := &appsv1.ReplicaSet{}
	if err := o.Get(ctx, key.NamespacedName, parent); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	deleting, err := controllerutil.Finalize(ctx, o, parent, chaosFinalizer, func(ctx context.Context) error {
		return o.empty(ctx, key)
	})
	if err != nil || deleting {
		return reconcile.Result{}, err
	}
	if strings.HasPrefix(key.Name, chaosGenerates) {
		err = o.generate(ctx, parent)
	} else {
		err = o.name(ctx, parent)
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	before := parent.DeepCopy()
	if parent.Status.Replicas = *parent.Spec.Replicas; parent.Status.Replicas == before.Status.Replicas {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{}, o.Status().Patch(ctx, parent, client.MergeFrom(before))
}

// empty deletes the children of a parent that is being deleted.
func (o chaosOperator) empty(ctx context.Context, parent reconcile.Request) error {
	children, err := o.children(ctx, parent)
	if err != nil {
		return err
	}
	for i := range children.Items {
		if err := o.Delete(ctx, &children.Items[i]); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

// name creates the children that are named after their parent, with a number, and deletes the others.
func (o chaosOperator) name(ctx context.Context, parent *appsv1.ReplicaSet) error {
	for i := range *parent.Spec.Replicas {
		child := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: parent.Namespace, Name: chaosChild(parent.Name, i)},
		}
		_, err := controllerutil.CreateOrPatch(ctx, o, child, func() error { return o.dress(parent, child) })
		if err != nil {
			return err
		}
	}
	children, err := o.children(ctx, reconcile.RequestFor(parent))
	if err != nil {
		return err
	}
	for i := range children.Items {
		var n int32
		if _, err := fmt.Sscanf(children.Items[i].Name, parent.Name+"-%d", &n); err == nil &&
			n < *parent.Spec.Replicas {
			continue
		}
		if err := o.Delete(ctx, &children.Items[i]); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

func chaosChild(parent string, n int32) string { return fmt.Sprintf("%s-%d", parent, n) }

// dress sets the label and the owner reference of a child.
func (o chaosOperator) dress(parent *appsv1.ReplicaSet, child *corev1.Secret) error {
	child.Labels = map[string]string{"of": parent.Name}
	child.OwnerReferences = nil // They may name an earlier parent of that name.
	return controllerutil.SetControllerReference(parent, child, o.Scheme())
}

// generate creates the missing children, and deletes those in excess.
func (o chaosOperator) generate(ctx context.Context, parent *appsv1.ReplicaSet) error {
	children, err := o.children(ctx, reconcile.RequestFor(parent))
	if err != nil {
		return err
	}
	for range int(*parent.Spec.Replicas) - len(children.Items) {
		child := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: parent.Namespace, GenerateName: parent.Name + "-"},
		}
		if err := o.dress(parent, child); err != nil {
			return err
		}
		if err := o.Create(ctx, child); err != nil {
			return err
		}
	}
	for i := int(*parent.Spec.Replicas); i < len(children.Items); i++ {
		if err := o.Delete(ctx, &children.Items[i]); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

// mirror records in a ConfigMap which children a parent has.
func (o chaosOperator) mirror(ctx context.Context, key reconcile.Request) (reconcile.Result, error) {
	parent := &appsv1.ReplicaSet{}
	if err := o.Get(ctx, key.NamespacedName, parent); client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, err
	}
	record := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "of-" + key.Name}}
	if parent.UID == "" {
		return reconcile.Result{}, client.IgnoreNotFound(o.Delete(ctx, record))
	}
	children, err := o.children(ctx, key)
	if err != nil {
		return reconcile.Result{}, err
	}
	_, err = controllerutil.CreateOrUpdate(ctx, o, record, func() error {
		record.Data = map[string]string{"children": chaosNames(children.Items)}
		record.OwnerReferences = nil
		return controllerutil.SetControllerReference(parent, record, o.Scheme())
	})
	return reconcile.Result{}, err
}

// chaosNames returns the names and UIDs of objects, so that an object and its replacement differ.
func chaosNames(children []corev1.Secret) string {
	names := make([]string, 0, len(children))
	for i := range children {
		names = append(names, children[i].Name+"="+string(children[i].UID))
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}
