package loop

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
)

// Widget is the custom resource of an operator, which keeps a ConfigMap of its name with its value.
type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   WidgetSpec   `json:"spec"`
	Status WidgetStatus `json:"status,omitempty,omitzero"`
}

// WidgetSpec is what the operator shall do.
type WidgetSpec struct {
	Value string `json:"value"`
}

// WidgetStatus is what the operator has done.
type WidgetStatus struct {
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// DeepCopyObject implements runtime.Object.
func (w *Widget) DeepCopyObject() runtime.Object {
	c := *w
	w.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	return &c
}

// WidgetList is a list of Widgets.
type WidgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Widget `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (l *WidgetList) DeepCopyObject() runtime.Object {
	c := *l
	l.ListMeta.DeepCopyInto(&c.ListMeta)
	c.Items = nil
	for _, w := range l.Items {
		c.Items = append(c.Items, *w.DeepCopyObject().(*Widget))
	}
	return &c
}

var widgets = schema.GroupVersion{Group: "bench.flyball.dev", Version: "v1"}

// WidgetScheme returns a scheme with Widgets and what is built in.
func WidgetScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	if err := scheme.AddToScheme(s); err != nil {
		panic(err) // Two of Kubernetes' own kinds collide.
	}
	s.AddKnownTypes(widgets, &Widget{}, &WidgetList{})
	metav1.AddToGroupVersion(s, widgets)
	return s
}

// operator is the operator of Widgets.
func operator() Setup {
	return Setup{
		Workers: 10, Reconcile: reconcileWidget, For: &Widget{}, Owns: &corev1.ConfigMap{}, Scheme: WidgetScheme(),
	}
}

const finalizer = "bench.flyball.dev/child"

// ValueKey is the value in a child's data.
const ValueKey = "value"

// reconcileWidget is a [Reconciler]. After an error, be it a conflict, the system calls it again.
func reconcileWidget(ctx context.Context, c Client, name types.NamespacedName) error {
	var w Widget
	if err := c.Get(ctx, name, &w); err != nil {
		return ignoreNotFound(err)
	}
	known := slices.Contains(w.Finalizers, finalizer)
	switch {
	case w.DeletionTimestamp != nil && !known:
		return nil
	case w.DeletionTimestamp != nil:
		child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name}}
		if err := ignoreNotFound(c.Delete(ctx, child)); err != nil {
			return err
		}
		w.Finalizers = slices.DeleteFunc(w.Finalizers, func(f string) bool { return f == finalizer })
		return ignoreNotFound(c.Update(ctx, &w))
	case !known:
		w.Finalizers = append(w.Finalizers, finalizer)
		if err := c.Update(ctx, &w); err != nil {
			return err
		}
	}
	if err := reconcileChild(ctx, c, &w); err != nil || w.Status.ObservedGeneration == w.Generation {
		return err
	}
	w.Status.ObservedGeneration = w.Generation
	return c.UpdateStatus(ctx, &w)
}

func reconcileChild(ctx context.Context, c Client, w *Widget) error {
	var child corev1.ConfigMap
	err := c.Get(ctx, types.NamespacedName{Namespace: w.Namespace, Name: w.Name}, &child)
	was := child.Data[ValueKey]
	child.Data = map[string]string{ValueKey: w.Spec.Value}
	switch {
	case ignoreNotFound(err) != nil:
		return err
	case err != nil:
		owner := *metav1.NewControllerRef(w, widgets.WithKind("Widget"))
		child.ObjectMeta = metav1.ObjectMeta{
			Namespace: w.Namespace, Name: w.Name, OwnerReferences: []metav1.OwnerReference{owner},
		}
		return c.Create(ctx, &child)
	case was != w.Spec.Value:
		return c.Update(ctx, &child)
	}
	return nil
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
