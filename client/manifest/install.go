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

// Order splits all into the objects that others need, namespaces and then custom resource definitions, and the rest.
// Otherwise it keeps the order.
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

// Install creates the objects that are missing, in the order of [Order]. It does not change existing objects. Before it
// creates the rest, which may have objects of the new definitions, it waits until the server serves the definitions. It
// does so even if there is no rest.
//
// Errors: the error of the first object that cannot be created; the cause of ctx if ctx ends while a definition is not
// served. A definition that conflicts with another is never served: give ctx a deadline.
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

// pause is the time between two looks at a definition that is not served yet.
const pause = 50 * time.Millisecond

// awaitServed waits until the resources of a definition are served.
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

// served reads the definition and, if it is established, lists objects of each of its versions. The condition is not
// enough: one server sets it before the other servers, and before discovery, have the resource.
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
		case err != nil && !apierrors.IsForbidden(err): // Forbidden also means that it is served.
			return false, err
		}
	}
	return true, nil
}

// conditionsOf returns the conditions of a definition, with the fields that messages show.
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

// wrong describes the conditions of a definition that are not true.
func wrong(crd *unstructured.Unstructured) (text string) {
	for _, c := range conditionsOf(crd) {
		if c.Status != metav1.ConditionTrue {
			text += fmt.Sprintf("; %s=%s: %s", c.Type, c.Status, c.Message)
		}
	}
	return text
}
