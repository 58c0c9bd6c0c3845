package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/manifest"
	"github.com/flyball-dev/flyball/examples/operators/items/api"
)

// fieldManager owns the fields that users set.
const fieldManager = "items"

// readManifests reads Items and Categories from files.
func readManifests(paths []string, in io.Reader) ([]manifest.Object, error) {
	all, err := manifest.ReadFiles(paths, in)
	if err != nil {
		return nil, err
	}
	for _, obj := range all {
		if err := checkManifest(obj); err != nil {
			return nil, fmt.Errorf("%s: %w", obj.From, err)
		}
	}
	// An item that comes before its category has to wait for it. This order avoids most waits.
	slices.SortStableFunc(all, func(a, b manifest.Object) int { return cmp.Compare(a.GetKind(), b.GetKind()) })
	return all, nil
}

// checkManifest returns an error for anything but an Item or a Category, and sets the namespace.
func checkManifest(obj manifest.Object) error {
	kind := obj.GroupVersionKind()
	if kind.GroupVersion() != api.GroupVersion || kind.Kind != "Item" && kind.Kind != "Category" {
		return fmt.Errorf("%s %s is none of the tool's: it keeps Items and Categories of %s", obj.GetAPIVersion(),
			kind.Kind, api.GroupVersion)
	}
	if ns := obj.GetNamespace(); ns != "" && ns != namespace {
		return fmt.Errorf(
			"%s %s is in namespace %s: this tool keeps people apart by --tenant, and all of it in namespace %s",
			kind.Kind, obj.GetName(), ns, namespace,
		)
	}
	obj.SetNamespace(namespace)
	return nil
}

// apply writes all manifests, even if one fails.
func apply(ctx context.Context, c client.Client, all []manifest.Object) error {
	var failed []error
	for _, m := range all {
		err := c.Apply(ctx, client.ApplyUnstructured(m.Unstructured), client.FieldOwner(fieldManager),
			client.ForceOwnership, client.StrictFields)
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", m.From, err))
		}
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(failed...)
}
