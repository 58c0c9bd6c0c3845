package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/flyball-dev/flyball/localapi/internal/codec"
	"github.com/flyball-dev/flyball/localapi/internal/resource"
	"github.com/flyball-dev/flyball/localapi/internal/watchcache"
)

// Managers maintains metadata.managedFields, which records who set which field with which kind of write.
//
// apimachinery and structured-merge-diff do the merging. This type gives them the types' schemas.
type Managers struct {
	// BuiltIn converts the built-in types.
	BuiltIn managedfields.TypeConverter

	mu  sync.Mutex
	all map[managerKey]*managedfields.FieldManager
}

type managerKey struct {
	kind        schema.GroupVersionKind
	subresource string

	// definition is the type of the objects. It is nil for a view, which is the same below every type.
	definition *resource.Definition
}

// Written describes the objects of one kind as written through one endpoint: it is what field management has to know of
// them.
type Written struct {
	Kind        schema.GroupVersionKind
	Subresource string
	New         func() runtime.Object
	Default     func(runtime.Object) // may be nil

	// Owns selects the fields that a write can own. Nil selects all.
	Owns fieldpath.Filter

	// Types returns the converter of the objects to typed values. Nil means the built-in types' converter.
	Types func() managedfields.TypeConverter

	definition *resource.Definition // nil for a view
}

// Written describes r's objects as written through a subresource, or through the main resource ("").
func (r *Resource) Written(subresource string) Written {
	d := r.Definition
	return Written{
		Kind: d.GroupVersionKind(), Subresource: subresource, New: r.New, Default: d.Default,
		Owns: r.owns(subresource), Types: d.Types, definition: d,
	}
}

// owns selects the fields that a write can own. A write does not own the fields that it resets to their old values.
//
// Source: k8s.io/apiserver pkg/registry/rest ResetFieldsStrategy, and the strategies of all types.
func (r *Resource) owns(subresource string) fieldpath.Filter {
	d := r.Definition
	switch {
	case subresource == "" && d.HasStatus:
		return fieldpath.NewExcludeSetFilter(fieldpath.NewSet(fieldpath.MakePathOrDie("status")))
	case subresource == "status":
		reset := append([]fieldpath.Path{fieldpath.MakePathOrDie("spec")}, d.StatusResets...)
		return fieldpath.NewExcludeSetFilter(fieldpath.NewSet(reset...))
	}
	return d.Subresources[subresource].Owns
}

// WrittenView describes the view of a subresource that is written as an object of its own (scale). The view has no
// lists, so its types can be deduced from the values of its fields.
func WrittenView(name string, sub resource.Subresource) Written {
	return Written{Kind: sub.Kind, Subresource: name, New: sub.New, Types: managedfields.NewDeducedTypeConverter}
}

// Update returns obj with the managed fields that result when manager replaces old by it. If they cannot be computed,
// obj keeps those of old. Errors: BadRequest if obj has no JSON form; the end of ctx, which may be why they cannot be
// computed.
func (s *Managers) Update(ctx context.Context, w Written, old, obj runtime.Object, manager string,
) (_ runtime.Object, err error) {
	fields, err := s.of(ctx, w)
	if err != nil {
		return nil, err
	}
	// A body in protobuf can contain values that JSON cannot represent, such as the text "{" in a RawExtension.
	// structured-merge-diff panics over them.
	defer func() {
		if p := recover(); p != nil {
			_, unencodable := json.Marshal(obj)
			if unencodable == nil {
				panic(p)
			}
			err = apierrors.NewBadRequest(fmt.Sprintf("the object cannot be represented as JSON: %v", unencodable))
		}
	}()
	managed := fields.UpdateNoErrors(old, obj, manager)
	return managed, ctx.Err()
}

// Application is the content of a server-side apply.
type Application struct {
	Configuration *unstructured.Unstructured
	Manager       string
	Force         bool // take fields from other managers
}

// Apply merges an applied configuration into old. Errors: Conflict, which names the fields and their managers.
func (s *Managers) Apply(ctx context.Context, w Written, old runtime.Object, a Application) (runtime.Object, error) {
	fields, err := s.of(ctx, w)
	if err != nil {
		return nil, err
	}
	return fields.Apply(old, a.Configuration, a.Manager, a.Force)
}

// of returns the field manager of what is written. One whose versions a webhook converts serves this request alone,
// because it calls the webhook with ctx.
func (s *Managers) of(ctx context.Context, w Written) (*managedfields.FieldManager, error) {
	// Scales of different types share a kind and so a key. The old objects differ between types, but the manager does
	// not.
	key := managerKey{w.Kind, w.Subresource, w.definition}
	converter := s.BuiltIn
	if w.Types != nil {
		converter = w.Types() // not under the lock: it may take long, and its owner caches it
	}
	if w.definition != nil && w.definition.Convert != nil {
		return w.fieldManager(converter, w.webhook(ctx))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.all[key]; m != nil {
		return m, nil
	}
	if !codec.IsUnstructured(w.New()) {
		converter = &goType{TypeConverter: converter, kind: w.Kind}
	}
	m, err := w.fieldManager(converter, nil)
	if err != nil {
		return nil, err
	}
	if s.all == nil {
		s.all = map[managerKey]*managedfields.FieldManager{}
	}
	s.all[key] = m
	return m, nil
}

// byWebhook converts an object to another version.
type byWebhook func(u *unstructured.Unstructured, to schema.GroupVersion) (runtime.Object, error)

// webhook returns the conversion by the webhook of the type, for a request with the context ctx.
func (w Written) webhook(ctx context.Context) byWebhook {
	return func(u *unstructured.Unstructured, to schema.GroupVersion) (runtime.Object, error) {
		converted, err := w.definition.Convert(ctx, []*unstructured.Unstructured{u}, to)
		if err != nil {
			return nil, err
		}
		return converted[0], nil
	}
}

// fieldManager returns a new field manager. convert is nil if no webhook converts the objects.
func (w Written) fieldManager(converter managedfields.TypeConverter, convert byWebhook) (*managedfields.FieldManager,
	error,
) {
	build := managedfields.NewDefaultFieldManager
	if codec.IsUnstructured(w.New()) {
		build = managedfields.NewDefaultCRDFieldManager
	}
	var filters map[fieldpath.APIVersion]fieldpath.Filter
	gv := w.Kind.GroupVersion()
	if w.Owns != nil {
		filters = map[fieldpath.APIVersion]fieldpath.Filter{}
		for _, kind := range w.others() {
			filters[fieldpath.APIVersion(kind.GroupVersion().String())] = w.Owns
		}
		filters[fieldpath.APIVersion(gv.String())] = w.Owns
	}
	v := version{w, convert}
	m, err := build(converter, v, v, v, w.Kind, gv, w.Subresource, filters)
	if err != nil {
		return nil, fmt.Errorf("field manager of %s: %w", w.Kind.Kind, err)
	}
	return m, nil
}

// forget drops the managers of a definition that is no longer served.
func (s *Managers) forget(d *resource.Definition) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.all, func(key managerKey, _ *managedfields.FieldManager) bool { return key.definition == d })
}

// others returns the other kinds under which the objects are served.
func (w Written) others() []schema.GroupVersionKind {
	if w.definition == nil {
		return nil
	}
	var kinds []schema.GroupVersionKind
	for _, version := range w.definition.Versions {
		kinds = append(kinds, w.Kind.GroupKind().WithVersion(version))
	}
	if f := w.definition.Family; f != nil {
		for _, m := range f.Members {
			kinds = append(kinds, m.Kind)
		}
	}
	return kinds
}

// version converts objects between versions in the way the field manager expects. Between versions of a type without a
// Go type, only apiVersion changes. Unstructured content is converted to the Go type, if there is one.
type version struct {
	Written
	convert byWebhook // nil if no webhook does
}

func (v version) ConvertToVersion(in runtime.Object, target runtime.GroupVersioner) (runtime.Object, error) {
	kinds := append([]schema.GroupVersionKind{v.Kind}, v.others()...)
	kind, ok := target.KindForGroupVersionKinds(kinds)
	if !ok {
		return nil, runtime.NewNotRegisteredErrForTarget("localapi", reflect.TypeOf(in).Elem(), target)
	}
	if v.definition != nil && v.definition.Family != nil {
		return v.convertMember(in, kind)
	}
	u, ok := in.(*unstructured.Unstructured)
	if !ok {
		return in, nil
	}
	if codec.IsUnstructured(v.Written.New()) {
		if u.GroupVersionKind() == kind {
			return in, nil
		}
		if v.convert != nil {
			return v.convert(u, kind.GroupVersion())
		}
		out := watchcache.ShallowCopy(u)
		out.GetObjectKind().SetGroupVersionKind(kind)
		return out, nil
	}
	return structured(u, v.Written.New(), v.Kind)
}

// structured converts unstructured content to an object of a Go type.
func structured(u *unstructured.Unstructured, obj runtime.Object,
	kind schema.GroupVersionKind,
) (runtime.Object, error) {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, obj); err != nil {
		return nil, err
	}
	obj.GetObjectKind().SetGroupVersionKind(kind)
	return obj, nil
}

// convertMember converts between the members of a family.
func (v version) convertMember(in runtime.Object, kind schema.GroupVersionKind) (runtime.Object, error) {
	f := v.definition.Family
	if u, ok := in.(*unstructured.Unstructured); ok {
		m, ok := f.Member(u.GroupVersionKind())
		if !ok {
			return nil, runtime.NewNotRegisteredErrForKind("localapi", u.GroupVersionKind())
		}
		var err error
		if in, err = structured(u, m.New(), m.Kind); err != nil {
			return nil, err
		}
	}
	out, ok := f.Convert(in, kind)
	if !ok {
		return nil, runtime.NewNotRegisteredErrForKind("localapi", kind)
	}
	return out, nil
}

func (version) Convert(in, out, _ any) error {
	return fmt.Errorf("no conversion from %T to %T", in, out)
}

func (version) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

func (v version) Default(obj runtime.Object) {
	if v.Written.Default != nil {
		v.Written.Default(obj)
	}
}

func (v version) New(schema.GroupVersionKind) (runtime.Object, error) {
	obj := v.Written.New()
	obj.GetObjectKind().SetGroupVersionKind(v.Kind)
	return obj, nil
}

// ViewManagers carries managed fields between an object and a view of it that is written as an object of its own. In a
// scale, the owners of spec.replicas are those of the field that it stands for.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/registry/apps/deployment/storage/storage.go scaleUpdatedObjectInfo.
type ViewManagers struct {
	scale *managedfields.ScaleHandler // nil: the view is the object, with the object's managed fields
}

// NewViewManagers starts from the managed fields of an object before a change.
func NewViewManagers(r *Resource, sub resource.Subresource, obj metav1.Object) *ViewManagers {
	if sub.Replicas == nil {
		return &ViewManagers{}
	}
	gv := r.Definition.GroupVersion
	paths := managedfields.ResourcePathMappings{}
	for _, kind := range r.Definition.Kinds() { // all versions are taken to have the field at the same place
		paths[kind.GroupVersion().String()] = sub.Replicas
	}
	return &ViewManagers{managedfields.NewScaleHandler(obj.GetManagedFields(), gv, paths)}
}

// Give sets the view's managed fields before a change.
func (v *ViewManagers) Give(view metav1.Object) error {
	if v.scale == nil {
		return nil
	}
	fields, err := v.scale.ToSubresource()
	if err != nil {
		return fmt.Errorf("managed fields of the view: %w", err)
	}
	view.SetManagedFields(fields)
	return nil
}

// Take sets the object's managed fields after a change of the view.
func (v *ViewManagers) Take(obj, view metav1.Object) error {
	if v.scale == nil {
		obj.SetManagedFields(view.GetManagedFields())
		return nil
	}
	fields, err := v.scale.ToParent(view.GetManagedFields())
	if err != nil {
		return fmt.Errorf("managed fields below the view: %w", err)
	}
	obj.SetManagedFields(fields)
	return nil
}
