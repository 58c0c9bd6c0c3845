package controllerruntime_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	peer "k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	ownclient "github.com/flyball-dev/flyball/client"
	ownapiutil "github.com/flyball-dev/flyball/manager/ctrl/apiutil"
	ownhandler "github.com/flyball-dev/flyball/manager/ctrl/handler"
	ownpredicate "github.com/flyball-dev/flyball/manager/ctrl/predicate"
	own "github.com/flyball-dev/flyball/reconcile"
	ownevent "github.com/flyball-dev/flyball/reconcile/event"
)

// states are objects of events. One is missing, and one is a nil pointer.
func states() (all []client.Object) {
	yes := true
	for _, m := range []metav1.ObjectMeta{
		{},
		{Generation: 1, ResourceVersion: "1"},
		{Generation: 2, ResourceVersion: "2", Labels: map[string]string{"app": "web"}},
		{ResourceVersion: "3", Annotations: map[string]string{"app": "web"}},
		{OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "one"},
			{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "two", Controller: &yes},
			{APIVersion: "v1", Kind: "Node", Name: "node"},
			{APIVersion: "extensions/v1", Kind: "ReplicaSet", Name: "other"},
		}},
	} {
		m.Namespace, m.Name = "default", fmt.Sprintf("pod%d", len(all))
		all = append(all, &corev1.Pod{ObjectMeta: m})
	}
	return append(all, nil, (*corev1.Pod)(nil))
}

// TestPredicatesAsTheirs compares the answers of the predicates in manager/ctrl with those of controller-runtime.
func TestPredicatesAsTheirs(t *testing.T) {
	web := metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	selector, err1 := predicate.LabelSelectorPredicate(web)
	ownSelector, err2 := ownpredicate.LabelSelectorPredicate(web)
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	generation, label := predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}
	version, ownVersion := predicate.ResourceVersionChangedPredicate{}, ownpredicate.ResourceVersionChangedPredicate{}
	ownGeneration, ownLabel := ownpredicate.GenerationChangedPredicate{}, ownpredicate.LabelChangedPredicate{}
	for name, p := range map[string]struct {
		theirs   predicate.Predicate
		own      ownpredicate.Predicate
		needsOne bool // panics without an object, as theirs does
	}{
		"funcs":       {theirs: predicate.Funcs{}, own: ownpredicate.Funcs{}},
		"generation":  {theirs: generation, own: ownGeneration},
		"label":       {theirs: label, own: ownLabel},
		"version":     {theirs: version, own: ownVersion},
		"annotation":  {theirs: predicate.AnnotationChangedPredicate{}, own: ownpredicate.AnnotationChangedPredicate{}},
		"and":         {theirs: predicate.And(generation, label), own: ownpredicate.And(ownGeneration, ownLabel)},
		"or":          {theirs: predicate.Or(generation, label), own: ownpredicate.Or(ownGeneration, ownLabel)},
		"not":         {theirs: predicate.Not(generation), own: ownpredicate.Not(ownGeneration)},
		"selector":    {theirs: selector, own: ownSelector, needsOne: true},
		"none of and": {theirs: predicate.And[client.Object](), own: ownpredicate.And[ownclient.Object]()},
		"none of or":  {theirs: predicate.Or[client.Object](), own: ownpredicate.Or[ownclient.Object]()},
	} {
		for i, old := range states() {
			for j, obj := range states() {
				if p.needsOne && j >= len(states())-2 {
					continue
				}
				theirs := []bool{
					p.theirs.Create(event.CreateEvent{Object: obj}), p.theirs.Delete(event.DeleteEvent{Object: obj}),
					p.theirs.Update(event.UpdateEvent{ObjectOld: old, ObjectNew: obj}),
					p.theirs.Generic(event.GenericEvent{Object: obj}),
				}
				ours := []bool{
					p.own.Create(ownevent.CreateEvent{Object: obj}), p.own.Delete(ownevent.DeleteEvent{Object: obj}),
					p.own.Update(ownevent.UpdateEvent{ObjectOld: old, ObjectNew: obj}),
					p.own.Generic(ownevent.GenericEvent{Object: obj}),
				}
				if !slices.Equal(ours, theirs) {
					t.Errorf("%s, states %d and %d: passes %v, theirs %v", name, i, j, ours, theirs)
				}
			}
		}
	}
}

// added records what a handler adds, each once.
type added map[string]bool

// theirQueue and ownQueue have the method that the handlers call.
type theirQueue struct {
	peer.TypedRateLimitingInterface[reconcile.Request]
	added added
}

func (q theirQueue) Add(r reconcile.Request) { q.added[r.String()] = true }

type ownQueue struct {
	own.Enqueuer[own.Request]
	added added
}

func (q ownQueue) Add(r own.Request) { q.added[r.String()] = true }

// TestHandlersAsTheirs compares the requests of the handlers in manager/ctrl with those of controller-runtime.
func TestHandlersAsTheirs(t *testing.T) {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(appsv1.SchemeGroupVersion.WithKind("ReplicaSet"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Node"), meta.RESTScopeRoot)
	set, node, secret := &appsv1.ReplicaSet{}, &corev1.Node{}, &corev1.Secret{}
	ctx := t.Context()
	for name, h := range map[string]struct {
		theirs   handler.EventHandler
		own      ownhandler.EventHandler
		needsOne bool
	}{
		"object": {theirs: &handler.EnqueueRequestForObject{}, own: &ownhandler.EnqueueRequestForObject{}},
		"owner": {
			theirs:   handler.EnqueueRequestForOwner(scheme.Scheme, mapper, set),
			own:      ownhandler.EnqueueRequestForOwner(scheme.Scheme, mapper, set),
			needsOne: true,
		},
		"controller": {
			theirs:   handler.EnqueueRequestForOwner(scheme.Scheme, mapper, set, handler.OnlyControllerOwner()),
			own:      ownhandler.EnqueueRequestForOwner(scheme.Scheme, mapper, set, ownhandler.OnlyControllerOwner()),
			needsOne: true,
		},
		"owner without a namespace": {
			theirs:   handler.EnqueueRequestForOwner(scheme.Scheme, mapper, node),
			own:      ownhandler.EnqueueRequestForOwner(scheme.Scheme, mapper, node),
			needsOne: true,
		},
		"owner of an unknown kind": {
			theirs:   handler.EnqueueRequestForOwner(scheme.Scheme, mapper, secret),
			own:      ownhandler.EnqueueRequestForOwner(scheme.Scheme, mapper, secret),
			needsOne: true,
		},
		"map function": {
			theirs: handler.EnqueueRequestsFromMapFunc(func(_ context.Context, obj client.Object) []reconcile.Request {
				return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(obj)}}
			}),
			own: ownhandler.EnqueueRequestsFromMapFunc(func(_ context.Context, obj ownclient.Object) []own.Request {
				return []own.Request{{NamespacedName: client.ObjectKeyFromObject(obj)}}
			}),
			needsOne: true,
		},
	} {
		objects := states()
		if h.needsOne {
			objects = objects[:len(objects)-2]
		}
		for i, old := range objects {
			for j, obj := range objects {
				theirs, ours := added{}, added{}
				q, ownQ := theirQueue{added: theirs}, ownQueue{added: ours}
				for _, step := range []func(){
					func() { h.theirs.Create(ctx, event.CreateEvent{Object: obj}, q) },
					func() { h.own.Create(ctx, ownevent.CreateEvent{Object: obj}, ownQ) },
					func() { h.theirs.Update(ctx, event.UpdateEvent{ObjectOld: old, ObjectNew: obj}, q) },
					func() { h.own.Update(ctx, ownevent.UpdateEvent{ObjectOld: old, ObjectNew: obj}, ownQ) },
					func() { h.theirs.Delete(ctx, event.DeleteEvent{Object: obj}, q) },
					func() { h.own.Delete(ctx, ownevent.DeleteEvent{Object: obj}, ownQ) },
					func() { h.theirs.Generic(ctx, event.GenericEvent{Object: obj}, q) },
					func() { h.own.Generic(ctx, ownevent.GenericEvent{Object: obj}, ownQ) },
				} {
					step()
				}
				if fmt.Sprint(ours) != fmt.Sprint(theirs) {
					t.Errorf("%s, states %d and %d: added %v, theirs %v", name, i, j, ours, theirs)
				}
			}
		}
	}
}

// TestKindsAsTheirs compares what apiutil in manager/ctrl finds out about objects with what controller-runtime's does.
func TestKindsAsTheirs(t *testing.T) {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Node"), meta.RESTScopeRoot)
	partial, untold := &metav1.PartialObjectMetadata{}, &metav1.PartialObjectMetadata{}
	partial.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Node"))
	dynamic := &unstructured.Unstructured{}
	dynamic.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	options := &metav1.ListOptions{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "ListOptions"}}
	for _, obj := range []runtime.Object{
		&corev1.Pod{}, &corev1.PodList{}, &corev1.Node{}, &corev1.Secret{}, partial, untold, dynamic, options,
		&metav1.ListOptions{}, &metav1.Status{}, &metav1.PartialObjectMetadataList{}, &unstructured.Unstructured{},
	} {
		theirs, err1 := apiutil.GVKForObject(obj, scheme.Scheme)
		ours, err2 := ownapiutil.GVKForObject(obj, scheme.Scheme)
		if ours != theirs || (err1 == nil) != (err2 == nil) {
			t.Errorf("%T is %v (%v), theirs %v (%v)", obj, ours, err2, theirs, err1)
		}
		namespaced, err1 := apiutil.IsObjectNamespaced(obj, scheme.Scheme, mapper)
		own, err2 := ownapiutil.IsObjectNamespaced(obj, scheme.Scheme, mapper)
		if own != namespaced || (err1 == nil) != (err2 == nil) {
			t.Errorf("%T namespaced: %v (%v), theirs %v (%v)", obj, own, err2, namespaced, err1)
		}
	}
}
