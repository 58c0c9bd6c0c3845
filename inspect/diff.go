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
	"sigs.k8s.io/yaml"
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

const (
	// mostRows bounds the lines of one state, and longestLine each of them, in runes.
	mostRows, longestLine = 4000, 400
	// mostCells bounds the table of align, in elements.
	mostCells = 4 << 20
)

// row is a line of two texts. Of a row in which both are the same, Cached has it.
type row struct {
	Cached *string `json:"cached,omitempty"`
	Live   *string `json:"live,omitempty"`
	Same   bool    `json:"same,omitempty"`
}

// yamlLines returns fields as lines of YAML, and whether that is not all.
func yamlLines(fields map[string]any) (lines []string, cut bool) {
	if fields == nil {
		return nil, false
	}
	text, err := yaml.Marshal(fields)
	if err != nil {
		return []string{"# " + err.Error()}, false
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(string(text), "\n"), "\n") {
		if len(lines) == mostRows {
			return lines, true
		}
		if runes := []rune(line); len(runes) > longestLine {
			line, cut = string(runes[:longestLine])+"…", true
		}
		lines = append(lines, line)
	}
	return lines, cut
}

// align puts the lines of two texts side by side: those of a longest common subsequence in rows of their own, and
// between them the others, in pairs. If the differing part is too large for that, none of its lines count as common.
func align(left, right []string) []row {
	rows := []row{}
	start := 0
	for start < min(len(left), len(right)) && left[start] == right[start] {
		rows = append(rows, row{Cached: &left[start], Same: true})
		start++
	}
	end := 0
	for end < min(len(left), len(right))-start && left[len(left)-1-end] == right[len(right)-1-end] {
		end++
	}
	rows = append(rows, alignMiddle(left[start:len(left)-end], right[start:len(right)-end])...)
	for n := len(left) - end; n < len(left); n++ {
		rows = append(rows, row{Cached: &left[n], Same: true})
	}
	return rows
}

func alignMiddle(left, right []string) (rows []row) {
	if len(left)*len(right) > mostCells {
		return pairs(nil, left, right)
	}
	// common[l][r] is the length of a longest common subsequence of left[l:] and right[r:].
	common := make([][]int, len(left)+1)
	for l := range common {
		common[l] = make([]int, len(right)+1)
	}
	for l := len(left) - 1; l >= 0; l-- {
		for r := len(right) - 1; r >= 0; r-- {
			if left[l] == right[r] {
				common[l][r] = common[l+1][r+1] + 1
			} else {
				common[l][r] = max(common[l+1][r], common[l][r+1])
			}
		}
	}
	l, r, fromLeft, fromRight := 0, 0, 0, 0
	for l < len(left) && r < len(right) {
		switch {
		case left[l] == right[r]:
			rows = append(pairs(rows, left[fromLeft:l], right[fromRight:r]), row{Cached: &left[l], Same: true})
			l, r = l+1, r+1
			fromLeft, fromRight = l, r
		case common[l+1][r] >= common[l][r+1]:
			l++
		default:
			r++
		}
	}
	return pairs(rows, left[fromLeft:], right[fromRight:])
}

// pairs appends lines that are not common, side by side.
func pairs(rows []row, left, right []string) []row {
	for n := range max(len(left), len(right)) {
		var r row
		if n < len(left) {
			r.Cached = &left[n]
		}
		if n < len(right) {
			r.Live = &right[n]
		}
		rows = append(rows, r)
	}
	return rows
}
