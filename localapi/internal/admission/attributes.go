package admission

import (
	"context"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/localapi/auth"
)

// Attributes describe one write to the plugins.
type Attributes struct {
	Operation   admissionv1.Operation
	Kind        schema.GroupVersionKind // of Object and OldObject: that of the subresource, if it has one (Scale)
	Resource    schema.GroupVersionResource
	Subresource string
	Namespace   string // of a Namespace: its own name
	Name        string // "": to be generated, or one of many in a deletecollection

	// Object is the next state; nil for a delete. Mutate may replace it, but not change it. Validate gets it read-only.
	Object runtime.Object

	// OldObject is the present state, read-only; nil for a create or a connection.
	OldObject runtime.Object

	// Options are the request's: CreateOptions, UpdateOptions, DeleteOptions; nil for a connection.
	Options runtime.Object
	DryRun  bool
	User    auth.User

	// Warn sends the client a warning. Annotate adds to the record of the request in the audit log.
	Warn     func(text string)
	Annotate func(key, value string)

	Server Server

	again  bool // this is the second round of mutations
	wanted bool // a plugin wants a second round
	states map[Plugin]any
}

// Server is what plugins may ask of the server.
type Server interface {
	// Equivalents returns the other resources under which the objects of Attributes.Resource are served, each with the
	// kind of what Subresource has there, in order of registration.
	Equivalents() []Equivalent

	// New returns an empty object of one of these kinds, or of Attributes.Kind.
	New(kind schema.GroupVersionKind) runtime.Object

	// Convert returns obj as one of these kinds. It does not change obj.
	Convert(ctx context.Context, obj runtime.Object, kind schema.GroupVersionKind) (runtime.Object, error)

	// Complete does to obj, which has one of these kinds, what decoding does: it drops unknown fields and sets
	// defaults.
	Complete(obj runtime.Object) error

	// Namespace returns a namespace, read-only. Errors: NotFound.
	Namespace(ctx context.Context, name string) (*corev1.Namespace, error)
}

// Equivalent is a resource under which an object is served, and the object's kind there.
type Equivalent struct {
	Resource schema.GroupVersionResource
	Kind     schema.GroupVersionKind
}

// Again reports whether this is the second round of mutations.
func (a *Attributes) Again() bool { return a.again }

// Reinvoke asks for a second round of mutations, because a plugin has changed what others have already seen.
func (a *Attributes) Reinvoke() { a.wanted = true }

// State returns what plugin p remembers of the first round of mutations. begin makes it in that round.
func (a *Attributes) State(p Plugin, begin func() any) any {
	if a.states == nil {
		a.states = map[Plugin]any{}
	}
	if a.states[p] == nil {
		a.states[p] = begin()
	}
	return a.states[p]
}
