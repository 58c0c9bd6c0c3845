package builtin

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/flyball-dev/flyball/localapi/internal/resource"
	"github.com/flyball-dev/flyball/localapi/internal/verify"
)

// All returns the definitions of all built-in types. Each call returns new values, so a caller may change them. The
// order is that of discovery: by group, the core group first.
func All() []*resource.Definition {
	events, autoscalers := events(), horizontalPodAutoscalers()
	return []*resource.Definition{
		bindings(),
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

		mutatingAdmissionPolicy(),
		mutatingAdmissionPolicyBinding(),
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
		clusterTrustBundle(),
		podCertificateRequest(),

		lease(),

		endpointSlice(),

		events[1],

		flowSchema(),
		priorityLevelConfiguration(),

		ingressClass(),
		ingress(),
		ipAddress(),
		networkPolicy(),
		serviceCIDR(),

		runtimeClass(),

		podDisruptionBudget(),

		clusterRoleBinding(),
		clusterRole(),
		roleBinding(),
		role(),

		deviceClass(),
		deviceTaintRule(),
		resourceClaim(),
		resourceClaimTemplate(),
		resourceSlice(),

		priorityClass(),

		csiDriver(),
		csiNode(),
		csiStorageCapacity(),
		storageClass(),
		volumeAttachment(),
		volumeAttributesClass(),

		storageVersionMigration(),
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

// statusKeepsMetadata makes a write to the status leave the metadata unchanged, too.
func statusKeepsMetadata(d *resource.Definition) {
	prepare := d.PrepareStatusUpdate
	d.PrepareStatusUpdate = func(ctx context.Context, obj, old runtime.Object) {
		prepare(ctx, obj, old)
		metav1.ResetObjectMetaForStatus(resource.Meta(obj), resource.Meta(old))
	}
	d.StatusResets = append(d.StatusResets, fieldpath.MakePathOrDie("metadata"))
}

// withGeneration makes metadata.generation count the changes of one field. It runs after the preparations that the
// definition has so far; a preparation that is set later replaces it.
func withGeneration(d *resource.Definition, name string) {
	create, update := d.PrepareCreate, d.PrepareUpdate
	d.PrepareCreate = func(ctx context.Context, obj runtime.Object) {
		if create != nil {
			create(ctx, obj)
		}
		resource.Meta(obj).SetGeneration(1)
	}
	d.PrepareUpdate = func(ctx context.Context, obj, old runtime.Object) {
		if update != nil {
			update(ctx, obj, old)
		}
		if !equality.Semantic.DeepEqual(part(obj, name).Interface(), part(old, name).Interface()) {
			resource.Meta(obj).SetGeneration(resource.Meta(old).GetGeneration() + 1)
		}
	}
}

// part returns a field of the struct that obj points to.
func part(obj runtime.Object, name string) reflect.Value {
	return reflect.ValueOf(obj).Elem().FieldByName(name)
}

// fieldOf returns the field of the struct that of points to at a path like "spec.pool.name". It must exist.
func fieldOf(of any, path string) reflect.Value {
	v := reflect.ValueOf(of).Elem()
	for name := range strings.SplitSeq(path, ".") {
		v = v.FieldByName(strings.ToUpper(name[:1]) + name[1:])
	}
	return v
}

// fixed returns the rules for an update that may not change some fields. rule compares a field with what it was.
func fixed(
	rule func(f verify.Field, name string, value, old any), names ...string,
) func(obj, old runtime.Object) field.ErrorList {
	return func(obj, old runtime.Object) field.ErrorList {
		return verify.Errors(nil, func(f verify.Field) {
			for _, name := range names {
				rule(f, name, fieldOf(obj, name).Interface(), fieldOf(old, name).Interface())
			}
		})
	}
}

// selectableFields lets clients select objects by some fields. A field that is nil counts as empty.
func selectableFields(names ...string) func(runtime.Object) fields.Set {
	return func(obj runtime.Object) fields.Set {
		set := make(fields.Set, len(names))
		for _, name := range names {
			set[name] = ""
			if v := reflect.Indirect(fieldOf(obj, name)); v.IsValid() {
				set[name] = fmt.Sprint(v)
			}
		}
		return set
	}
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

func rules[T runtime.Object](f func(verify.Field, T)) func(runtime.Object) field.ErrorList {
	return func(obj runtime.Object) field.ErrorList {
		return verify.Errors(nil, func(at verify.Field) { f(at, obj.(T)) })
	}
}

func updateRules[T runtime.Object](
	f func(at verify.Field, obj, old T),
) func(obj, old runtime.Object) field.ErrorList {
	return func(obj, old runtime.Object) field.ErrorList {
		return verify.Errors(nil, func(at verify.Field) { f(at, obj.(T), old.(T)) })
	}
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
