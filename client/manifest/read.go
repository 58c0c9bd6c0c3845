package manifest

import (
	"bufio"
	"bytes"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	documents "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/flyball-dev/flyball/internal/yamlfiles"
)

// Object is an object that was read.
type Object struct {
	*unstructured.Unstructured
	// From is where it stood, for messages: "web.yaml, document 2".
	From string
}

// Read reads what r has; name is what messages call it. Nothing at all is no objects, and no error.
func Read(name string, r io.Reader) (all []Object, err error) {
	chunks, n := documents.NewYAMLReader(bufio.NewReader(r)), 0
	for {
		chunk, err := chunks.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s, document %d: %w", name, n+1, err)
		}
		for _, document := range values(chunk) {
			n++
			from := fmt.Sprintf("%s, document %d", name, n)
			content, err := decode(document)
			if err == nil && content != nil {
				all, err = add(all, &unstructured.Unstructured{Object: content}, from)
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", from, err)
			}
		}
	}
}

// ReadFiles reads paths, one after the other: files, directories (what is in them with an ending of YAML or JSON, not
// below, without kustomization.yaml), or "-" for stdin, which may be nil where that is not among them. That there is
// nothing in all of them is an error.
func ReadFiles(paths []string, stdin io.Reader) (all []Object, err error) {
	for _, path := range paths {
		if path == "-" {
			found, err := Read("standard input", stdin)
			if err != nil {
				return nil, err
			}
			all = append(all, found...)
			continue
		}
		files, err := yamlfiles.In(path)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			if all, err = readFile(all, file, func() (fs.File, error) { return os.Open(file) }); err != nil {
				return nil, err
			}
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no objects in %s", strings.Join(paths, ", "))
	}
	return all, nil
}

// ReadFS reads the files of fsys that match the patterns, which are those of [fs.Glob]; each must match something. It
// is for manifests that a program embeds.
func ReadFS(fsys fs.FS, patterns ...string) (all []Object, err error) {
	for _, pattern := range patterns {
		files, err := fs.Glob(fsys, pattern)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", pattern, err)
		}
		if len(files) == 0 {
			return nil, fmt.Errorf("%s: %w", pattern, fs.ErrNotExist)
		}
		for _, file := range files {
			if all, err = readFile(all, file, func() (fs.File, error) { return fsys.Open(file) }); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

func readFile(all []Object, name string, open func() (fs.File, error)) ([]Object, error) {
	f, err := open()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	found, err := Read(name, f)
	return append(all, found...), err
}

// values are the JSON values of a document that are in a row, or the document itself if it is something else.
func values(document []byte) (all [][]byte) {
	for row := stdjson.NewDecoder(bytes.NewReader(document)); ; {
		var value stdjson.RawMessage
		if err := row.Decode(&value); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			return [][]byte{document}
		}
		all = append(all, value)
	}
}

// decode returns nil for a document without anything in it.
func decode(document []byte) (content map[string]any, err error) {
	if !stdjson.Valid(document) { // JSON is not taken for YAML: its escapes are others
		if document, err = yaml.YAMLToJSONStrict(document); err != nil {
			return nil, err
		}
	}
	strict, err := json.UnmarshalStrict(document, &content)
	return content, errors.Join(append([]error{err}, strict...)...)
}

// add appends obj, or what it holds if it is a list.
func add(all []Object, obj *unstructured.Unstructured, from string) ([]Object, error) {
	switch {
	case obj.GetKind() == "" || obj.GetAPIVersion() == "":
		return nil, errors.New("an object without apiVersion or kind")
	case obj.IsList():
		list, err := obj.ToList()
		for i := range list.Items {
			item := fmt.Sprintf("item %d", i+1)
			if all, err = add(all, &list.Items[i], from+", "+item); err != nil {
				return nil, fmt.Errorf("%s: %w", item, err)
			}
		}
		return all, err
	case obj.GetName() == "":
		return nil, fmt.Errorf("%s without metadata.name", obj.GetKind())
	}
	return append(all, Object{obj, from}), nil
}

// Find reads the first object of a kind into a Go type of the API, which must have all its fields.
func Find(all []Object, kind string, into any) error {
	for _, obj := range all {
		if obj.GetKind() != kind {
			continue
		}
		text, err := obj.MarshalJSON()
		if err != nil {
			return fmt.Errorf("%s: %w", obj.From, err)
		}
		unknown, err := json.UnmarshalStrict(text, into)
		if err = errors.Join(append([]error{err}, unknown...)...); err != nil {
			return fmt.Errorf("%s: %w", obj.From, err)
		}
		return nil
	}
	return fmt.Errorf("there is no %s", kind)
}
