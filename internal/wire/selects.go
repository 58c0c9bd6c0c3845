package wire

import (
	"fmt"
	"strings"

	fieldselector "k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	kjson "sigs.k8s.io/json"
)

// Content decodes an object. Only kinds of the built-in API are sent as protobuf.
func Content(contentType string, body []byte) (content map[string]any, err error) {
	if !IsProtobuf(contentType) {
		err = kjson.UnmarshalCaseSensitivePreserveInts(body, &content)
		return content, err
	}
	obj, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	if err != nil {
		return nil, err
	}
	return runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
}

// Selects reports whether sel selects an object by its content.
func Selects(sel fieldselector.Selector, content map[string]any) bool {
	for _, r := range sel.Requirements() {
		if equal := fieldAt(content, r.Field) == r.Value; equal == (r.Operator == "!=") {
			return false
		}
	}
	return true
}

// fieldAt returns the text of the scalar at a path like "spec.nodeName".
func fieldAt(object map[string]any, path string) string {
	var at any = object
	for name := range strings.SplitSeq(path, ".") {
		m, isMap := at.(map[string]any)
		if !isMap {
			return ""
		}
		at = m[name]
	}
	if at == nil {
		return ""
	}
	return fmt.Sprint(at)
}
