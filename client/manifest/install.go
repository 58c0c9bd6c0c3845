package manifest

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/conditions"
	"github.com/flyball-dev/flyball/informer/listwatch"
)

// Order tells what others need, namespaces and then definitions of resources, from all the rest. Either part keeps
// its order otherwise.
func Order(all []Object) (first, rest []Object) {
	var definitions []Object
	for _, obj := range all {
		switch obj.GroupVersionKind().GroupKind() {
		case schema.GroupKind{Kind: "Namespace"}:
			first = append(first, obj)
		case schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:
			definitions = append(definitions, obj)
		default:
			rest = append(rest, obj)
		}
	}
	return append(first, definitions...), rest
}

// Install creates what is missing, in [Order], and leaves as it is what exists. Before the rest is created, and when
// there is no rest before it returns, the resources that were defined are served: their objects may be among the
// rest.
//
// Errors: the first object that cannot be created; the end of ctx, by its cause, while a definition is not served.
// One that conflicts with another never is: give ctx a deadline.
func Install(ctx context.Context, c client.Client, all []Object) error {
	first, rest := Order(all)
	if err := create(ctx, c, first); err != nil {
		return err
	}
	for _, obj := range first {
		if obj.GetKind() != "CustomResourceDefinition" {
			continue
		}
		if err := awaitServed(ctx, c, obj); err != nil {
			return fmt.Errorf("%s: wait for %s to be served: %w", obj.From, obj.GetName(), err)
		}
	}
	return create(ctx, c, rest)
}

func create(ctx context.Context, c client.Client, all []Object) error {
	for _, obj := range all {
		if err := client.IgnoreAlreadyExists(c.Create(ctx, obj.DeepCopy(), client.StrictFields)); err != nil {
			return fmt.Errorf("%s: create %s %s: %w", obj.From, obj.GetKind(), obj.GetName(), err)
		}
	}
	return nil
}

// pause is how long a definition is left alone that is not served yet.
const pause = 50 * time.Millisecond

func awaitServed(ctx context.Context, c client.Client, definition Object) error {
	for crd := definition.DeepCopy(); ; {
		is, err := served(ctx, c, crd)
		switch {
		case is:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("%w%s", context.Cause(ctx), wrong(crd))
		case err != nil:
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// served reads the definition and, when it is established, asks for objects of each of its versions: that it is
// established is known to one server before it is known to the others, and before discovery tells of it.
func served(ctx context.Context, c client.Client, crd *unstructured.Unstructured) (bool, error) {
	err := c.Get(ctx, client.ObjectKeyFromObject(crd), crd, client.Live)
	if err != nil || !conditions.Is(conditionsOf(crd), "Established", metav1.ConditionTrue) {
		return false, err
	}
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, v := range versions {
		version, _ := v.(map[string]any)
		if version["served"] != true {
			continue
		}
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(
			schema.GroupVersionKind{Group: group, Version: fmt.Sprint(version["name"]), Kind: kind + "List"},
		)
		err := c.List(ctx, list, client.Live, client.Limit(1))
		var unknown *listwatch.UnknownKindError
		switch {
		case apierrors.IsNotFound(err) || meta.IsNoMatchError(err) || errors.As(err, &unknown):
			return false, nil
		case err != nil && !apierrors.IsForbidden(err): // who may define a resource need not be allowed to read it
			return false, err
		}
	}
	return true, nil
}

// conditionsOf are a definition's conditions, as far as a person has to know.
func conditionsOf(crd *unstructured.Unstructured) (all []metav1.Condition) {
	list, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
	for _, c := range list {
		c, _ := c.(map[string]any)
		text := func(field string) string { s, _ := c[field].(string); return s }
		all = append(all,
			metav1.Condition{
				Type: text("type"), Status: metav1.ConditionStatus(text("status")),
				Message: text("message"),
			})
	}
	return all
}

// wrong says which of a definition's conditions are not true.
func wrong(crd *unstructured.Unstructured) (text string) {
	for _, c := range conditionsOf(crd) {
		if c.Status != metav1.ConditionTrue {
			text += fmt.Sprintf("; %s=%s: %s", c.Type, c.Status, c.Message)
		}
	}
	return text
}
