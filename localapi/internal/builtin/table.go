package builtin

import (
	"bytes"
	"cmp"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/diff"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/localapi/internal/resource"
	"github.com/flyball-dev/flyball/localapi/internal/verify"
)

// cell is a value in a row of a table, with the name, the type and the description of its column. A column with
// priority 0 is always printed, one with priority 1 by "kubectl get -o wide". The server sends both; kubectl chooses.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/printers/internalversion/printers.go, for all columns and cells of the package.
type cell struct {
	name, kind, doc string
	format          string // "name", or ""
	value           any
	priority        int32
}

// printed makes row print the objects of a type. row returns the same columns for every object; the definition gets
// those of an empty one.
func printed[T any, P pointerTo[T]](d *resource.Definition, row func(obj P, now time.Time) []cell) {
	kind := reflect.TypeFor[T]()
	columns, ok := knownColumns.Load(kind)
	if !ok {
		columns, _ = knownColumns.LoadOrStore(kind, columnsOf(row(new(T), time.Time{})))
	}
	d.Columns = columns.([]metav1.TableColumnDefinition)
	d.Row = func(obj runtime.Object, now time.Time) []any {
		values := make([]any, 0, len(d.Columns))
		for _, c := range row(obj.(P), now) {
			values = append(values, c.value)
		}
		return values
	}
}

// ageCell is the place of the age in a row of listed, if it is not behind the last column that is always printed.
var ageCell = cell{name: "Age"}

// listed is printed for a type whose first column is its name, and which has a column for its age. row returns the
// other cells.
func listed[T any, P pointerTo[T]](d *resource.Definition, row func(obj P) []cell) {
	printed(d, func(obj P, now time.Time) []cell {
		m := resource.Meta(obj)
		cells := append([]cell{nameColumn(m.GetName())}, row(obj)...)
		age := ageColumn(m.GetCreationTimestamp(), now)
		if at := slices.IndexFunc(cells, func(c cell) bool { return c.name == age.name }); at >= 0 {
			cells[at] = age
			return cells
		}
		wide := slices.IndexFunc(cells, func(c cell) bool { return c.priority > 0 })
		if wide < 0 {
			wide = len(cells)
		}
		return slices.Insert(cells, wide, age)
	})
}

// knownColumns are the columns of types, by Go type. All servers of the process share them: to make them would take a
// fifth of the memory that a server needs to start. They are read-only.
var knownColumns sync.Map

func columnsOf(row []cell) []metav1.TableColumnDefinition {
	columns := make([]metav1.TableColumnDefinition, len(row))
	for i, c := range row {
		columns[i] = metav1.TableColumnDefinition{
			Name: c.name, Type: c.kind, Format: c.format, Description: c.doc, Priority: c.priority,
		}
	}
	return columns
}

func column(name, kind, doc string, value any) cell {
	return cell{name: name, kind: kind, doc: doc, value: value}
}

func wideColumn(name, kind, doc string, value any) cell {
	return cell{name: name, kind: kind, doc: doc, value: value, priority: 1}
}

func nameColumn(name string) cell {
	return cell{
		name: "Name", kind: "string", format: "name", doc: metav1.ObjectMeta{}.SwaggerDoc()["name"], value: name,
	}
}

func ageColumn(created metav1.Time, now time.Time) cell {
	return column("Age", "string", metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"], resource.Age(created, now))
}

// containerColumns are the -o wide columns of every type with a pod template.
func containerColumns(t *corev1.PodTemplateSpec) []cell {
	names, images := containerLists(t)
	return []cell{
		wideColumn("Containers", "string", "Names of each container in the template.", names),
		wideColumn("Images", "string", "Images referenced by each container in the template.", images),
	}
}

// templateColumns are containerColumns and the selector of the pods.
func templateColumns(t *corev1.PodTemplateSpec, doc, selector string) []cell {
	return append(containerColumns(t), wideColumn("Selector", "string", doc, selector))
}

func containerLists(t *corev1.PodTemplateSpec) (names, images string) {
	n, i := make([]string, len(t.Spec.Containers)), make([]string, len(t.Spec.Containers))
	for at := range t.Spec.Containers {
		n[at], i[at] = t.Spec.Containers[at].Name, t.Spec.Containers[at].Image
	}
	return strings.Join(n, ","), strings.Join(i, ",")
}

// orNone returns s, or "<none>" if it is empty.
func orNone(s string) string {
	return cmp.Or(s, "<none>")
}

func replicasOf(n *int32) int64 {
	return int64(ptr.Deref(n, 0))
}

// shown returns v as the real server prints it in an error. The real server's internal types have the fields of v1 in
// the same order, but no JSON names. So nothing is left out and every field has its Go name. Types of metav1 have no
// internal twin and keep their names.
func shown(v any) json.RawMessage {
	var out bytes.Buffer
	show(&out, reflect.ValueOf(v))
	return out.Bytes()
}

// shownDiff returns the difference between two values as the real server prints it.
func shownDiff(a, b any) string { return diff.Diff(shown(a), shown(b)) }

// immutableShown is [verify.Field.Immutable] for a value that the real server prints in its own types.
func immutableShown(f verify.Field, name string, value, old any) {
	if !equality.Semantic.DeepEqual(value, old) {
		f.Reject(name, true, shown(value), apivalidation.FieldImmutableErrorMsg)
	}
}

func show(out *bytes.Buffer, v reflect.Value) {
	switch {
	case !v.IsValid() || (nilable(v) && v.IsNil()):
		out.WriteString("null")
	case named(v):
		showNamed(out, v)
	case v.Kind() == reflect.Pointer:
		show(out, v.Elem())
	case v.Kind() == reflect.Struct:
		out.WriteByte('{')
		showFields(out, v)
		out.WriteByte('}')
	default: // a slice: named has handled everything else
		out.WriteByte('[')
		for i := range v.Len() {
			separate(out)
			show(out, v.Index(i))
		}
		out.WriteByte(']')
	}
}

func nilable(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Interface:
		return true
	}
	return false
}

// named reports whether a value prints the same in all versions: it prints itself, belongs to metav1, or contains no
// fields of ours.
func named(v reflect.Value) bool {
	t := v.Type()
	if _, ok := v.Interface().(json.Marshaler); ok || strings.HasSuffix(t.PkgPath(), "/meta/v1") {
		return true
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Struct:
		return false
	case reflect.Slice:
		return t.Elem().Kind() == reflect.Uint8
	}
	return true
}

func showNamed(out *bytes.Buffer, v reflect.Value) {
	text, err := json.Marshal(v.Interface())
	if err != nil { // API types always marshal
		text = []byte("null")
	}
	out.Write(text)
}

// showFields writes the fields of a struct. Those of an embedded struct are written in its place.
func showFields(out *bytes.Buffer, v reflect.Value) {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if !field.Anonymous {
			separate(out)
			showNamed(out, reflect.ValueOf(field.Name))
			out.WriteByte(':')
			show(out, v.Field(i))
			continue
		}
		if !named(v.Field(i)) {
			showFields(out, v.Field(i))
			continue
		}
		var inner bytes.Buffer
		showNamed(&inner, v.Field(i))
		if text := bytes.Trim(inner.Bytes(), "{}"); len(text) > 0 {
			separate(out)
			out.Write(inner.Bytes()[1 : inner.Len()-1])
		}
	}
}

// separate writes a comma, unless the next value is the first of its list.
func separate(out *bytes.Buffer) {
	if text := out.Bytes(); len(text) > 0 && text[len(text)-1] != '{' && text[len(text)-1] != '[' {
		out.WriteByte(',')
	}
}
