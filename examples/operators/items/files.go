package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/examples/operators/items/api"
)

// fieldManager owns the fields that people set.
const fieldManager = "items"

// manifest is an Item or a Category out of a file.
type manifest struct {
	*unstructured.Unstructured
	from string
}

// readManifests reads files, directories (what is in them with an ending of YAML or JSON), or "-" for in.
func readManifests(paths []string, in io.Reader) (all []manifest, err error) {
	for _, path := range paths {
		files := []string{path}
		if path != "-" {
			if files, err = filesIn(path); err != nil {
				return nil, err
			}
		}
		for _, file := range files {
			found, err := readManifest(file, in)
			if err != nil {
				return nil, err
			}
			all = append(all, found...)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no objects in %s", strings.Join(paths, ", "))
	}
	// An item can come before its category, and waits for it then. This way round there is less to wait for.
	slices.SortStableFunc(all, func(a, b manifest) int { return cmp.Compare(a.GetKind(), b.GetKind()) })
	return all, nil
}

func filesIn(path string) (files []string, err error) {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return []string{path}, err
	}
	entries, err := os.ReadDir(path)
	for _, e := range entries {
		if !e.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(e.Name())) {
			files = append(files, filepath.Join(path, e.Name()))
		}
	}
	return files, err
}

func readManifest(file string, in io.Reader) ([]manifest, error) {
	if file == "-" {
		return parse("standard input", in)
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return parse(file, f)
}

// parse reads one document after the other. Empty ones are none.
func parse(name string, in io.Reader) (all []manifest, err error) {
	documents := yaml.NewYAMLOrJSONDecoder(in, 4096)
	for n := 1; ; n++ {
		from := fmt.Sprintf("%s, document %d", name, n)
		var raw runtime.RawExtension
		if err := documents.Decode(&raw); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", from, err)
		}
		if text := bytes.TrimSpace(raw.Raw); len(text) == 0 || string(text) == "null" {
			continue
		}
		obj := &unstructured.Unstructured{}
		if err := obj.UnmarshalJSON(raw.Raw); err != nil {
			return nil, fmt.Errorf("%s: %w", from, err)
		}
		if err := checkManifest(obj); err != nil {
			return nil, fmt.Errorf("%s: %w", from, err)
		}
		all = append(all, manifest{obj, from})
	}
}

// checkManifest refuses what is neither an Item nor a Category, or has no name.
func checkManifest(obj *unstructured.Unstructured) error {
	kind := obj.GroupVersionKind()
	if kind.GroupVersion() != api.GroupVersion || kind.Kind != "Item" && kind.Kind != "Category" {
		return fmt.Errorf("%s %s is none of the tool's: it keeps Items and Categories of %s", obj.GetAPIVersion(), kind.Kind, api.GroupVersion)
	}
	if obj.GetName() == "" {
		return fmt.Errorf("%s without metadata.name", kind.Kind)
	}
	if ns := obj.GetNamespace(); ns != "" && ns != namespace {
		return fmt.Errorf("%s %s is in namespace %s: this tool keeps people apart by --tenant, and all of it in namespace %s", kind.Kind, obj.GetName(), ns, namespace)
	}
	obj.SetNamespace(namespace)
	return nil
}

// apply writes the manifests, each even if another fails.
func apply(ctx context.Context, c client.Client, all []manifest) error {
	var failed []error
	for _, m := range all {
		err := c.Apply(ctx, client.ApplyUnstructured(m.Unstructured), client.FieldOwner(fieldManager), client.ForceOwnership, client.StrictFields)
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", m.from, err))
		}
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(failed...)
}
