package builtin

import (
	"context"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flyball-dev/flyball/localapi/internal/resource"
)

// family returns the definitions of a type and of the other kinds under which it is served. The first definition is
// complete, and the others get its rules: they convert an object to the first kind, apply the rule, and convert it
// back.
func family(first *resource.Definition, others ...resource.Member) []*resource.Definition {
	f := &resource.Family{
		Members: append([]resource.Member{{Kind: first.GroupVersionKind(), New: first.New}}, others...),
	}
	first.Family = f
	definitions := []*resource.Definition{first}
	for _, m := range others {
		definitions = append(definitions, converted(first, m))
	}
	return definitions
}

// converted returns the definition of another kind of first's family. The caller sets NewList and the rules of that
// kind alone.
func converted(first *resource.Definition, m resource.Member) *resource.Definition {
	d := *first
	d.GroupVersion, d.New = m.Kind.GroupVersion(), m.New
	d.Default = change(m, first.Default)
	d.PrepareCreate = func(ctx context.Context, obj runtime.Object) {
		change(m, func(obj runtime.Object) {
			if first.PrepareCreate != nil {
				first.PrepareCreate(ctx, obj)
			}
		})(obj)
	}
	d.PrepareUpdate = changeFrom(m, first.PrepareUpdate)
	d.PrepareStatusUpdate = changeFrom(m, first.PrepareStatusUpdate)
	d.Validate = judge(m, first.Validate)
	d.ValidateUpdate = judgeFrom(m, first.ValidateUpdate)
	d.ValidateStatusUpdate = judgeFrom(m, first.ValidateStatusUpdate)
	if first.Fields != nil {
		d.Fields = func(obj runtime.Object) fields.Set { return first.Fields(m.ToFirst(obj)) }
	}
	d.Row = func(obj runtime.Object, now time.Time) []any { return first.Row(m.ToFirst(obj), now) }
	return &d
}

// change returns f for objects of another kind. Even if f is nil, what the first kind cannot express is lost.
func change(m resource.Member, f func(runtime.Object)) func(runtime.Object) {
	return func(obj runtime.Object) {
		as := m.ToFirst(obj)
		if f != nil {
			f(as)
		}
		replace(obj, m.FromFirst(as))
	}
}

func changeFrom(
	m resource.Member, f func(ctx context.Context, obj, old runtime.Object),
) func(ctx context.Context, obj, old runtime.Object) {
	if f == nil {
		return nil
	}
	return func(ctx context.Context, obj, old runtime.Object) {
		as := m.ToFirst(obj)
		f(ctx, as, m.ToFirst(old))
		replace(obj, m.FromFirst(as))
	}
}

func judge(m resource.Member, f func(runtime.Object) field.ErrorList) func(runtime.Object) field.ErrorList {
	if f == nil {
		return nil
	}
	return func(obj runtime.Object) field.ErrorList { return f(m.ToFirst(obj)) }
}

func judgeFrom(
	m resource.Member, f func(obj, old runtime.Object) field.ErrorList,
) func(obj, old runtime.Object) field.ErrorList {
	if f == nil {
		return nil
	}
	return func(obj, old runtime.Object) field.ErrorList { return f(m.ToFirst(obj), m.ToFirst(old)) }
}

// replace gives obj the content of by, but keeps its kind.
func replace(obj, by runtime.Object) {
	kind := obj.GetObjectKind().GroupVersionKind()
	reflect.ValueOf(obj).Elem().Set(reflect.ValueOf(by).Elem())
	obj.GetObjectKind().SetGroupVersionKind(kind)
}
