package run

import (
	"bytes"
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
)

// manifest is one object that is to be applied.
type manifest struct {
	*unstructured.Unstructured
	from string // the file and, if it has several, which document
}

// readManifests reads all paths: files, directories (what is in them with an ending of YAML or JSON, not below), or "-" for in.
func readManifests(paths []string, in io.Reader) ([]manifest, error) {
	var all []manifest
	for _, path := range paths {
		files := []string{path}
		if path != "-" {
			var err error
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
	return all, nil
}

func filesIn(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return []string{path}, err
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, e := range entries {
		if !e.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(e.Name())) {
			files = append(files, filepath.Join(path, e.Name()))
		}
	}
	return files, nil
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

// parse reads one document after the other. Empty ones are none; lists are what they hold.
func parse(name string, in io.Reader) ([]manifest, error) {
	var all []manifest
	documents := yaml.NewYAMLOrJSONDecoder(in, 4096)
	for n := 1; ; n++ {
		from := fmt.Sprintf("%s, document %d", name, n)
		var raw runtime.RawExtension
		if err := documents.Decode(&raw); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", from, err)
		}
		text := bytes.TrimSpace(raw.Raw)
		if len(text) == 0 || string(text) == "null" {
			continue
		}
		obj, err := decode(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", from, err)
		}
		if !obj.IsList() {
			all = append(all, manifest{obj, from})
			continue
		}
		list, err := obj.ToList()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", from, err)
		}
		for i := range list.Items {
			all = append(all, manifest{&list.Items[i], fmt.Sprintf("%s, item %d", from, i+1)})
		}
	}
}

func decode(text []byte) (*unstructured.Unstructured, error) {
	obj := &unstructured.Unstructured{}
	if err := obj.UnmarshalJSON(text); err != nil {
		return nil, err
	}
	if !obj.IsList() && obj.GetName() == "" {
		return nil, fmt.Errorf("%s without metadata.name: an object to apply must have one", obj.GetKind())
	}
	return obj, nil
}

// sortForApply puts first what others need: namespaces, and definitions of types. All else keeps its order.
func sortForApply(all []manifest) {
	order := func(m manifest) int {
		switch m.GetKind() {
		case "Namespace":
			return 0
		case kindOfDefinitions:
			return 1
		}
		return 2
	}
	slices.SortStableFunc(all, func(a, b manifest) int { return order(a) - order(b) })
}

const kindOfDefinitions = "CustomResourceDefinition"
