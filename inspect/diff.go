package inspect

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	// mostDifferences bounds what is told of one change.
	mostDifferences = 20
	// longestValue bounds a value, in runes.
	longestValue = 80
)

// differences returns what changed between two states of an object, one field a line; nil unless there are two.
func differences(resource string, old, changed metav1.Object) []string {
	before, after := content(resource, old), content(resource, changed)
	if before == nil || after == nil {
		return nil
	}
	d := differ{secret: resource == secrets}
	d.compare("", before, after)
	if extra := len(d.lines) - mostDifferences; extra > 0 {
		d.lines = append(d.lines[:mostDifferences], fmt.Sprintf("and %d more", extra))
	}
	return d.lines
}

// secrets is the resource whose data is not shown.
const secrets = "secrets"

// content returns the fields of an object that may be shown; nil if there is none. The caller owns it.
func content(resource string, obj metav1.Object) map[string]any {
	if obj == nil || reflect.ValueOf(obj).IsNil() {
		return nil
	}
	var fields map[string]any
	if u, ok := obj.(*unstructured.Unstructured); ok {
		fields = u.DeepCopy().Object
	} else {
		var err error
		if fields, err = runtime.DefaultUnstructuredConverter.ToUnstructured(obj); err != nil {
			return nil
		}
	}
	if metadata, ok := fields["metadata"].(map[string]any); ok {
		delete(metadata, "managedFields")
		delete(metadata, "resourceVersion")
		if annotations, ok := metadata["annotations"].(map[string]any); ok && resource == secrets {
			delete(annotations, corev1.LastAppliedConfigAnnotation)
		}
	}
	return fields
}

// differ collects differences.
type differ struct {
	secret bool
	lines  []string
}

// compare appends the differences between two values, field by field.
func (d *differ) compare(path string, old, changed any) {
	before, isMap := old.(map[string]any)
	after, stays := changed.(map[string]any)
	if isMap && stays {
		names := maps.Clone(before)
		maps.Copy(names, after)
		for _, name := range slices.Sorted(maps.Keys(names)) {
			d.compare(join(path, name), before[name], after[name])
		}
		return
	}
	first, isList := old.([]any)
	second, stays := changed.([]any)
	if isList && stays && len(first) == len(second) {
		for n := range first {
			d.compare(fmt.Sprintf("%s[%d]", path, n), first[n], second[n])
		}
		return
	}
	switch {
	case reflect.DeepEqual(old, changed):
	case d.secret && (strings.HasPrefix(path, "data") || strings.HasPrefix(path, "stringData")):
		d.lines = append(d.lines, path+": changed; the data of Secrets is not shown")
	default:
		d.lines = append(d.lines, fmt.Sprintf("%s: %s → %s", path, value(old), value(changed)))
	}
}

func join(path, name string) string {
	switch {
	case strings.ContainsAny(name, "./"):
		return path + "[" + name + "]"
	case path == "":
		return name
	}
	return path + "." + name
}

// value is a field's value as one line.
func value(v any) string {
	if v == nil {
		return "none"
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // Readers escape what their medium needs.
	if err := e.Encode(v); err != nil {
		return fmt.Sprint(v)
	}
	text := strings.TrimSuffix(b.String(), "\n")
	if runes := []rune(text); len(runes) > longestValue {
		return string(runes[:longestValue]) + "…"
	}
	return text
}
