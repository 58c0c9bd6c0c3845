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
	// From is where the object was read, for messages: "web.yaml, document 2".
	From string
}

// Read reads all objects from r, which errors and Object.From call name. An empty r has no objects; that is not an
// error.
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

// ReadFiles reads the objects of all paths. A path is a file, a directory, or "-" for stdin, which may be nil if no
// path is "-". A directory stands for the YAML and JSON files directly in it, except kustomization files.
//
// Errors: also if there are no objects at all.
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

// ReadFS reads the objects of the files in fsys that match the patterns of [fs.Glob]. Every pattern must match a file.
// It is for embedded manifests.
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

// readFile appends the objects of a file.
func readFile(all []Object, name string, open func() (fs.File, error)) ([]Object, error) {
	f, err := open()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	found, err := Read(name, f)
	return append(all, found...), err
}

// values returns the JSON values in a document, or the document itself if it is not JSON.
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

// decode decodes a document. The content of an empty document is nil.
func decode(document []byte) (content map[string]any, err error) {
	if !stdjson.Valid(document) { // JSON is not read as YAML, which has other escapes.
		if document, err = yaml.YAMLToJSONStrict(document); err != nil {
			return nil, err
		}
	}
	strict, err := json.UnmarshalStrict(document, &content)
	return content, errors.Join(append([]error{err}, strict...)...)
}

// add appends obj, or the items of obj if it is a list.
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

// Find decodes the first object of a kind into a Go type of the API, which must have all fields of the object.
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
