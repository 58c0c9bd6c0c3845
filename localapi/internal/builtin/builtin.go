package builtin

import (
	"context"
	"reflect"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flyball-dev/flyball/localapi/internal/resource"
)

// All returns the definitions of all built-in types. Each call returns new values, so a caller may change them. The
// order is that of discovery: by group, the core group first.
func All() []*resource.Definition {
	events, autoscalers := events(), horizontalPodAutoscalers()
	return []*resource.Definition{
		configMap(),
		endpoints(),
		events[0],
		limitRange(),
		namespace(),
		node(),
		persistentVolumeClaim(),
		persistentVolume(),
		pod(),
		podTemplate(),
		replicationController(),
		resourceQuota(),
		secret(),
		serviceAccount(),
		service(),

		mutatingWebhookConfiguration(),
		validatingAdmissionPolicy(),
		validatingAdmissionPolicyBinding(),
		validatingWebhookConfiguration(),

		controllerRevision(),
		daemonSet(),
		deployment(),
		replicaSet(),
		statefulSet(),

		autoscalers[0],
		autoscalers[1],

		cronJob(),
		job(),

		certificateSigningRequest(),

		lease(),

		endpointSlice(),

		events[1],

		ingressClass(),
		ingress(),
		networkPolicy(),

		runtimeClass(),

		podDisruptionBudget(),

		clusterRoleBinding(),
		clusterRole(),
		roleBinding(),
		role(),

		priorityClass(),

		storageClass(),
	}
}

// pointerTo is a pointer to the Go type T of an API object.
type pointerTo[T any] interface {
	*T
	runtime.Object
}

// typed returns the start of a definition for the API type with the Go type T and lists of the Go type L. It is not
// namespaced.
func typed[T, L any, P pointerTo[T], PL pointerTo[L]](
	gv schema.GroupVersion, plural string, shortNames ...string,
) *resource.Definition {
	kind := kindOf[T]()
	return &resource.Definition{
		GroupVersion: gv, Kind: kind, Plural: plural, Singular: strings.ToLower(kind), ShortNames: shortNames,
		New:     func() runtime.Object { return P(new(T)) },
		NewList: func() runtime.Object { return PL(new(L)) },
	}
}

// kindOf returns the kind of the API type with the Go type T.
func kindOf[T any]() string { return reflect.TypeFor[T]().Name() }

// namespaced is typed for a namespaced type.
func namespaced[T, L any, P pointerTo[T], PL pointerTo[L]](
	gv schema.GroupVersion, plural string, shortNames ...string,
) *resource.Definition {
	d := typed[T, L, P, PL](gv, plural, shortNames...)
	d.Namespaced = true
	return d
}

// withStatus adds the subresource status to a type with a Spec and a Status. A write to the type leaves its status
// unchanged, and a write to the status leaves its spec unchanged.
func withStatus(d *resource.Definition) {
	d.HasStatus = true
	d.PrepareCreate = func(_ context.Context, obj runtime.Object) { part(obj, "Status").SetZero() }
	d.PrepareUpdate = func(_ context.Context, obj, old runtime.Object) { part(obj, "Status").Set(part(old, "Status")) }
	d.PrepareStatusUpdate = func(_ context.Context, obj, old runtime.Object) {
		part(obj, "Spec").Set(part(old, "Spec"))
	}
}

// withGeneration makes metadata.generation count the changes of one field. It runs after the preparations that the
// definition has so far; a preparation that is set later replaces it.
func withGeneration(d *resource.Definition, name string) {
	create, update := d.PrepareCreate, d.PrepareUpdate
	d.PrepareCreate = func(ctx context.Context, obj runtime.Object) {
		if create != nil {
			create(ctx, obj)
		}
		setGeneration(obj, 1)
	}
	d.PrepareUpdate = func(ctx context.Context, obj, old runtime.Object) {
		if update != nil {
			update(ctx, obj, old)
		}
		same := equality.Semantic.DeepEqual(part(obj, name).Interface(), part(old, name).Interface())
		if m, err := meta.Accessor(old); err == nil && !same {
			setGeneration(obj, m.GetGeneration()+1)
		}
	}
}

func setGeneration(obj runtime.Object, n int64) {
	if m, err := meta.Accessor(obj); err == nil {
		m.SetGeneration(n)
	}
}

// part returns a field of the struct that obj points to.
func part(obj runtime.Object, name string) reflect.Value {
	return reflect.ValueOf(obj).Elem().FieldByName(name)
}

// The functions below let a type's rules be written for its own Go type. They convert them into the untyped functions
// of a resource.Definition. The server calls a definition only with objects that its New made, so the assertion holds.

func mutate[T runtime.Object](f func(T)) func(runtime.Object) {
	return func(obj runtime.Object) { f(obj.(T)) }
}

func prepare[T runtime.Object](f func(T)) func(context.Context, runtime.Object) {
	return func(_ context.Context, obj runtime.Object) { f(obj.(T)) }
}

func carry[T runtime.Object](f func(obj, old T)) func(ctx context.Context, obj, old runtime.Object) {
	return func(_ context.Context, obj, old runtime.Object) { f(obj.(T), old.(T)) }
}

func check[T runtime.Object](f func(T) field.ErrorList) func(runtime.Object) field.ErrorList {
	return func(obj runtime.Object) field.ErrorList { return f(obj.(T)) }
}

func compare[T runtime.Object](f func(obj, old T) field.ErrorList) func(obj, old runtime.Object) field.ErrorList {
	return func(obj, old runtime.Object) field.ErrorList { return f(obj.(T), old.(T)) }
}

func selectable[T runtime.Object](f func(T) fields.Set) func(runtime.Object) fields.Set {
	return func(obj runtime.Object) fields.Set { return f(obj.(T)) }
}

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
