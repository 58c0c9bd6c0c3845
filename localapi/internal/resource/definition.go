package resource

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Definition describes one resource of one API version to the server.
//
// Only the naming fields, New and NewList are required. A nil function means that the type needs nothing special.
// Functions own the objects that they get for the length of the call, and may change them unless stated otherwise.
// "Old" objects are shared with readers and must not be changed. Functions may be called concurrently for different
// objects, keep no state, and never block: they run inside a write.
type Definition struct {
	// GroupVersion and Kind name the type ("apps/v1", "Deployment"). Plural is the resource's name in URLs, and
	// Singular the lower-case kind. ShortNames and Categories are for discovery ("deploy"; "all").
	GroupVersion       schema.GroupVersion
	Kind               string
	ListKind           string // "" means Kind with "List" at its end
	Plural, Singular   string
	ShortNames         []string
	Categories         []string
	Namespaced         bool
	New, NewList       func() runtime.Object
	HasStatus          bool
	Subresources       map[string]Subresource
	Columns            []metav1.TableColumnDefinition
	DefaultPropagation metav1.DeletionPropagation // of a delete that names none; "" means background
	// PUT of a missing object creates it (Service, Endpoints, Lease, Event)
	CreateOnUpdate      bool
	DeleteReturnsObject bool // DELETE answers with the object, not a Status (Pod, Service)
	// PUT without metadata.resourceVersion is refused (Lease, custom resources)
	NeedsResourceVersion bool
	// nothing new may be created (custom resources of a definition being deleted)
	Terminating bool

	// Versions are all versions of a kind without a Go type. They differ only in apiVersion, and are stored in
	// StorageVersion. Both fields are empty for a type with only one version.
	Versions       []string
	StorageVersion string

	// Convert converts objects of other versions to a version by the type's webhook. Nil means that versions differ
	// only in apiVersion. Conform makes an object of any version conform to its schema, with defaults, as Coerce and
	// Default do for the version of the definition; it is not nil if Convert is not.
	Convert func(ctx context.Context, objects []*unstructured.Unstructured,
		to schema.GroupVersion) ([]*unstructured.Unstructured, error)
	Conform func(obj runtime.Object) error

	// Family is set for a type with a Go type that is served as several kinds, and nil for all others.
	Family *Family

	// Coerce makes an object without a Go type conform to its schema, as decoding does for other objects, and returns
	// the paths of the fields that it dropped. It runs before Default. It fails if the object cannot be made to
	// conform.
	Coerce func(obj runtime.Object) (unknown []string, err error)

	// KindOptional means that an object without a Go type may leave out its kind and apiVersion, as other objects may.
	// Those of the request take their place. A custom resource may not.
	KindOptional bool

	// OpenAPI returns the name and the schema of the type in OpenAPI documents. Nil means that they are derived from
	// the Go type.
	OpenAPI func() (name string, s *spec.Schema)

	// Deprecation, if not empty, is sent as a Warning header with every answer of the type.
	Deprecation string

	// NoDeleteCollection means that the type does not have the verb deletecollection (Namespace).
	NoDeleteCollection bool

	// ValidateName is the type's rule for metadata.name. prefix is true for a generateName. Nil means a DNS-1123
	// subdomain.
	ValidateName func(name string, prefix bool) []string

	// Default fills in API defaults. It runs on every object that a client sends, before anything else sees it, and
	// must be idempotent.
	Default func(obj runtime.Object)

	// PrepareCreate clears what a client may not set (status) and sets what the server owns (generation 1).
	PrepareCreate func(ctx context.Context, obj runtime.Object)

	// PrepareUpdate copies from old what a write to the main resource may not change (status), and increments
	// metadata.generation if the desired state differs.
	PrepareUpdate func(ctx context.Context, obj, old runtime.Object)

	// PrepareStatusUpdate copies from old what a write to the status subresource may not change (spec, and the parts of
	// the metadata that the real strategy protects).
	PrepareStatusUpdate func(ctx context.Context, obj, old runtime.Object)

	// StatusResets are the fields, besides spec, that a write to the status subresource resets, and so cannot own.
	StatusResets []fieldpath.Path

	// Validate validates a whole object, and ValidateCreate in addition a new one. ValidateUpdate validates only the
	// transition from old (immutable fields), in addition to Validate. ValidateStatusUpdate alone validates a status
	// write. None of them changes its arguments. The server validates the metadata that all types share.
	Validate             func(obj runtime.Object) field.ErrorList
	ValidateCreate       func(obj runtime.Object) field.ErrorList
	ValidateUpdate       func(obj, old runtime.Object) field.ErrorList
	ValidateStatusUpdate func(obj, old runtime.Object) field.ErrorList

	// ValidateRules evaluates rules in CEL on an object, for a write to any part of it. old is nil for a create. found
	// are the errors that the other functions have found. It returns further errors, and calls warn for what is wrong
	// but tolerated.
	ValidateRules func(ctx context.Context, obj, old runtime.Object, found field.ErrorList,
		warn func(string)) field.ErrorList

	// Warnings are sent to the client as Warning headers. old is nil for a create.
	Warnings func(obj, old runtime.Object) []string

	// DeleteWarnings are sent to a client that deletes with these options.
	DeleteWarnings func(o *metav1.DeleteOptions) []string

	// Grace makes deletion graceful. It returns for how many seconds a delete leaves the object, with
	// metadata.deletionTimestamp set, so that another client (a kubelet) can remove it by a second delete with grace 0.
	// 0 marks the object, so that watchers see the mark, and removes it at once. A nil Grace removes without a mark. o
	// is never nil.
	//
	// Source: k8s.io/apiserver pkg/registry/rest RESTGracefulDeleteStrategy.
	Grace func(obj runtime.Object, o *metav1.DeleteOptions) int64

	// PrepareDelete runs once, when deletionTimestamp is first set (a Namespace becomes Terminating).
	PrepareDelete func(ctx context.Context, obj runtime.Object)

	// Finalizing reports whether the type has reasons of its own, besides metadata.finalizers, for which a deleted
	// object stays (a Namespace's spec.finalizers).
	Finalizing func(obj runtime.Object) bool

	// DeletionFinalizer, if not empty, is added by the first delete, so that the object stays until the cleanup is done
	// (a CustomResourceDefinition).
	DeletionFinalizer string

	// Fields returns the selectable fields besides metadata.name and metadata.namespace. Every selectable field must be
	// present, with its empty value if unset: a field selector with a missing name is a bad request.
	Fields func(obj runtime.Object) fields.Set

	// Review makes the type a question: a create is answered with what Review returns, and nothing is stored or read.
	// The user that asks is in the context (package auth).
	Review func(ctx context.Context, obj runtime.Object) (runtime.Object, error)

	// Creates makes the type another way to a subresource, such as "pods/binding": a create is a create of that
	// subresource of the object that has the name in the body. Nothing else can be done with the type.
	Creates string

	// Row returns the cells of obj, in the order of Columns. If Columns is nil, name and creation time are printed.
	Row func(obj runtime.Object, now time.Time) []any

	// RowConditions returns what a printer should know of obj besides its cells: that it has completed (kubectl dims
	// such rows).
	RowConditions func(obj runtime.Object) []metav1.TableRowCondition

	// Allocate reserves values that must be unique in the cluster and writes them into obj. old is nil for a create;
	// obj is nil when old was removed. The server calls done once: with true after the write was stored (free what only
	// old held), with false if it was not (free what was reserved now). done may be nil. A dry run always ends with
	// false. When a server starts on existing storage, it calls Allocate with every stored object as obj and a nil old,
	// so values already set must be reserved as they are.
	Allocate func(ctx context.Context, a Allocator, obj, old runtime.Object) (done func(stored bool), err error)

	// Types converts objects to typed values for field management. Nil means the built-in types' converter, which
	// the server builds once, on first use.
	Types func() managedfields.TypeConverter
}

// Subresource is a resource below an object, other than status: scale, binding, eviction, log.
type Subresource struct {
	// Kind is the type of the request body and, for get, update and patch, of the answer (autoscaling/v1 Scale).
	Kind schema.GroupVersionKind

	// New returns the empty value of that type.
	New func() runtime.Object

	// Verbs are the verbs for discovery: get, update, patch (all need Project; the last two need Merge) or create. With
	// Connect, all verbs are allowed.
	Verbs []string

	// Project returns the subresource's view of obj, which it may not change. If this server cannot serve the
	// subresource (log), it returns an API status error.
	Project func(ctx context.Context, obj runtime.Object) (runtime.Object, error)

	// Merge writes the client's view, sub, into obj, which the server then stores. For a create it performs the action
	// (binding sets spec.nodeName), and the answer is a success Status. It increments metadata.generation itself where
	// the real server does (scale). Errors are API status errors.
	Merge func(ctx context.Context, obj, sub runtime.Object) error

	// Unmanaged keeps a write out of the managed fields (binding). Owns, if not nil, selects the fields that a write
	// can own. Replicas is set for a scale: it is the object's field that the view's spec.replicas stands for. The
	// owners of the one own the other.
	Unmanaged bool
	Owns      fieldpath.Filter
	Replicas  fieldpath.Path

	// Connect makes the subresource a connection (exec, proxy). There is nothing to connect to here: a request for an
	// existing object is answered with the API status error that Connect returns. Such a subresource sets no other
	// function.
	Connect func(obj runtime.Object) error
	// ConnectNeedsCreate means that the user needs the verb create to connect, whatever the method of the request is.
	ConnectNeedsCreate bool

	// Answer makes a create a question about an object, with body as the request (token). The server sends what Answer
	// returns, and stores nothing. Errors are API status errors.
	Answer func(ctx context.Context, obj, body runtime.Object) (runtime.Object, error)

	// Validate validates what Merge made of old, in place of the definition's Validate and ValidateUpdate: a binding
	// sets a field that an update may not set. Nil means those two.
	Validate func(obj, old runtime.Object) field.ErrorList

	// Delete makes a create a request to delete the object, with the options that it returns (eviction). Merge, if set,
	// marks the object first. again means that a conflict only shows that the object has changed since the decision:
	// Delete is then called again.
	Delete func(ctx context.Context, d Deletion) (o *metav1.DeleteOptions, again bool, err error)
}

// Deletion is a request to delete an object through a subresource.
type Deletion struct {
	Object runtime.Object // read-only
	Body   runtime.Object // what the client sent; Delete may change it before Merge gets it
	DryRun bool           // asked for in the query; the body may ask as well
	Others Others
}

// Others gives rules access to the server's objects of other types.
type Others interface {
	// List returns the objects of a namespace. They are read-only.
	List(ctx context.Context, gvr schema.GroupVersionResource, namespace string) ([]runtime.Object, error)

	// UpdateStatus changes the status of an object as the server itself. change gets a copy, and runs again if another
	// write came in between. Errors: change's own, NotFound.
	UpdateStatus(ctx context.Context, gvr schema.GroupVersionResource, namespace, name string,
		change func(obj runtime.Object) error) error
}

// Allocator allocates values that are unique among the server's objects. Its methods may be called concurrently.
type Allocator interface {
	// IP reserves an address of the named range ("IPv4", "IPv6" for cluster IPs): want, or a free one if want is
	// empty. Errors say that the address is taken, is outside the range, or that the range is exhausted.
	IP(ipRange, want string) (string, error)
	ReleaseIP(ip string)

	// Port reserves a port of the named range ("nodePort", "healthCheckNodePort"): want, or a free one if want is 0.
	Port(portRange string, want int32) (int32, error)
	ReleasePort(portRange string, port int32)
}

// CreateOnly reports whether objects of the type can only be created. None is stored or read.
func (d *Definition) CreateOnly() bool { return d.Review != nil || d.Creates != "" }

// GroupVersionKind returns the type's full kind.
func (d *Definition) GroupVersionKind() schema.GroupVersionKind {
	return d.GroupVersion.WithKind(d.Kind)
}

// Kinds returns the kinds as which objects of the type are served, in order of registration.
func (d *Definition) Kinds() []schema.GroupVersionKind {
	var all []schema.GroupVersionKind
	switch {
	case d.Family != nil:
		for _, m := range d.Family.Members {
			all = append(all, m.Kind)
		}
	case len(d.Versions) > 0:
		for _, v := range d.Versions {
			all = append(all, d.GroupVersionKind().GroupKind().WithVersion(v))
		}
	default:
		all = append(all, d.GroupVersionKind())
	}
	return all
}

// ListGroupVersionKind returns the full kind of lists of the type.
func (d *Definition) ListGroupVersionKind() schema.GroupVersionKind {
	if d.ListKind != "" {
		return d.GroupVersion.WithKind(d.ListKind)
	}
	return d.GroupVersion.WithKind(d.Kind + "List")
}

// GroupVersionResource returns the type's full resource name.
func (d *Definition) GroupVersionResource() schema.GroupVersionResource {
	return d.GroupVersion.WithResource(d.Plural)
}

// GroupResource returns the type's resource name without a version, as errors print it: that of the request.
func (d *Definition) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: d.GroupVersion.Group, Resource: d.Plural}
}

// GroupKind returns the type's kind without a version, as errors print it. All members of a family have that of the
// first.
func (d *Definition) GroupKind() schema.GroupKind {
	if d.Family != nil {
		return d.Family.Stored().Kind.GroupKind()
	}
	return d.GroupVersionKind().GroupKind()
}

// Family is one type that is served as several kinds: versions of one group, or kinds of two groups. The objects are
// the same, and are stored as the first member. All members have one resource name.
type Family struct {
	Members []Member
}

// Member is one of the kinds of a [Family].
type Member struct {
	Kind schema.GroupVersionKind
	New  func() runtime.Object

	// ToFirst converts an object of the kind to one of the first member, and FromFirst the other way round. The result
	// may share parts with the argument. Both are nil in the first member.
	ToFirst, FromFirst func(runtime.Object) runtime.Object
}

// Stored returns the member as which objects are stored.
func (f *Family) Stored() Member { return f.Members[0] }

// Member returns the member of a kind.
func (f *Family) Member(kind schema.GroupVersionKind) (m Member, ok bool) {
	for _, m := range f.Members {
		if m.Kind == kind {
			return m, true
		}
	}
	return Member{}, false
}

// Convert returns obj, whose kind must be set, as an object of another member. ok is false if one of the kinds is not a
// member.
func (f *Family) Convert(obj runtime.Object, kind schema.GroupVersionKind) (converted runtime.Object, ok bool) {
	from, known := f.Member(obj.GetObjectKind().GroupVersionKind())
	to, wanted := f.Member(kind)
	switch {
	case !known || !wanted:
		return nil, false
	case from.Kind == kind:
		return obj, true
	}
	if from.ToFirst != nil {
		obj = from.ToFirst(obj)
	}
	if to.FromFirst != nil {
		obj = to.FromFirst(obj)
	}
	obj.GetObjectKind().SetGroupVersionKind(kind)
	return obj, true
}

// Age returns how long ago t was, as kubectl prints it: "<unknown>" for the zero time.
func Age(t metav1.Time, now time.Time) string {
	if t.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(now.Sub(t.Time))
}

// Meta returns the metadata of an object of a type that has a definition, or of the view of one that a subresource
// shows. They all have metadata.
func Meta(obj runtime.Object) metav1.Object { return obj.(metav1.Object) }
