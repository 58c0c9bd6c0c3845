package admission

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"

	"github.com/flyball-dev/flyball/localapi/auth"
	"github.com/flyball-dev/flyball/localapi/internal/resource"
)

// Plugin is one step of a [Chain]. Its methods may be called concurrently, for different requests. Errors are API
// status errors, which the client gets; they refuse the write.
type Plugin interface {
	// Idle reports whether the plugin would do nothing for any request for a resource. It is called for every write,
	// and is cheap.
	Idle(r schema.GroupResource) bool

	// Mutate may replace a.Object.
	Mutate(ctx context.Context, a *Attributes) error

	// Validate accepts the write or refuses it.
	Validate(ctx context.Context, a *Attributes) error
}

// Settler is a plugin that acts once more when a request is over, whether or not its writes were made.
type Settler interface {
	// Settle ends what Validate began for the writes of r. done reports whether the request has succeeded.
	Settle(ctx context.Context, r *Review, done bool)
}

// Chain is a list of plugins, in their order.
type Chain []Plugin

// Idle reports whether no plugin would do anything for a resource.
func (c Chain) Idle(r schema.GroupResource) bool {
	return !slices.ContainsFunc(c, func(p Plugin) bool { return !p.Idle(r) })
}

// mutate lets all plugins mutate, once or twice.
func (c Chain) mutate(ctx context.Context, a *Attributes) error {
	for {
		for _, p := range c {
			if err := p.Mutate(ctx, a); err != nil {
				return err
			}
		}
		if a.again || !a.wanted {
			return nil
		}
		a.again = true
	}
}

func (c Chain) validate(ctx context.Context, a *Attributes) error {
	for _, p := range c {
		if err := p.Validate(ctx, a); err != nil {
			return err
		}
	}
	return nil
}

// Review is the admission of one request.
type Review struct {
	Chain Chain

	// Request is what all writes of the request have in common. Operation, Object, OldObject and Options are not set.
	Request Attributes

	// Options are the options of a create, update or patch, in the form of an update's. Deletion are those of a delete.
	Options  metav1.UpdateOptions
	Deletion *metav1.DeleteOptions
}

// Mutate returns the object to store in place of obj. It is the replacement of old, or new if old is nil.
func (r *Review) Mutate(ctx context.Context, obj, old runtime.Object) (runtime.Object, error) {
	a := r.attributes(obj, old)
	m, err := meta.Accessor(obj)
	if err != nil { // some objects, like options, have no metadata
		err = r.Chain.mutate(ctx, a)
		return a.Object, err
	}
	before := m.GetManagedFields()
	if err := r.Chain.mutate(ctx, a); err != nil {
		return nil, err
	}
	m = resource.Meta(a.Object)
	if err := managedfields.ValidateManagedFields(m.GetManagedFields()); err != nil {
		m.SetManagedFields(before)
		a.Warn(fmt.Sprintf(".metadata.managedFields was in an invalid state after admission; this could be caused by "+
			"an outdated mutating admission controller; please fix your requests: %v", err))
	}
	return a.Object, nil
}

// Validate checks obj, which is about to replace old, or to be created if old is nil.
func (r *Review) Validate(ctx context.Context, obj, old runtime.Object) error {
	a := r.attributes(obj, old)
	if m, err := meta.Accessor(obj); err == nil && a.Name == "" {
		a.Name = m.GetName() // by now it has been generated
	}
	return r.Chain.validate(ctx, a)
}

// Settle tells the plugins that the request is over.
func (r *Review) Settle(ctx context.Context, done bool) {
	for _, p := range r.Chain {
		if s, ok := p.(Settler); ok {
			s.Settle(ctx, r, done)
		}
	}
}

// Delete checks that old may be deleted.
func (r *Review) Delete(ctx context.Context, old runtime.Object) error {
	a := r.Request
	a.Review, a.Operation, a.OldObject, a.Options = r, admissionv1.Delete, old, r.Deletion
	before := a
	if err := r.Chain.mutate(ctx, &a); err != nil {
		return err
	}
	a = before
	return r.Chain.validate(ctx, &a)
}

// Connect checks a connection with the given options.
func (r *Review) Connect(ctx context.Context, options runtime.Object) error {
	a := r.Request
	a.Review, a.Operation, a.Object = r, admissionv1.Connect, options
	before := a
	if err := r.Chain.mutate(ctx, &a); err != nil {
		return err
	}
	a = before
	return r.Chain.validate(ctx, &a)
}

func (r *Review) attributes(obj, old runtime.Object) *Attributes {
	a, o := r.Request, r.Options
	a.Review, a.Operation, a.Object, a.OldObject = r, admissionv1.Update, obj, old
	if old != nil {
		o.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("UpdateOptions"))
		a.Options = &o
		return &a
	}
	create := metav1.CreateOptions(o)
	create.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("CreateOptions"))
	a.Operation, a.Options = admissionv1.Create, &create
	return &a
}

// View is the admission of a write through a subresource whose objects are views of the stored ones (Scale). Such a
// write is mutated as a view, before the view is merged into the object, so Mutate does nothing.
type View struct {
	*Review

	// Project returns the view of a stored object.
	Project func(ctx context.Context, obj runtime.Object) (runtime.Object, error)
}

// Mutate returns obj.
func (v View) Mutate(_ context.Context, obj, _ runtime.Object) (runtime.Object, error) {
	return obj, nil
}

// Validate checks the views of obj and old.
func (v View) Validate(ctx context.Context, obj, old runtime.Object) error {
	view, err := v.Project(ctx, obj)
	if err != nil {
		return err
	}
	before, err := v.Project(ctx, old)
	if err != nil {
		return err
	}
	return v.Review.Validate(ctx, view, before)
}

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

	// Review is the admission of the request that the write belongs to.
	Review *Review

	again  bool // this is the second round of mutations
	wanted bool // a plugin wants a second round
	rounds map[Plugin]*Rounds
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

	// Types returns the converter of objects of one of these kinds to typed values.
	Types(kind schema.GroupVersionKind) managedfields.TypeConverter

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

var namespaces = corev1.SchemeGroupVersion.WithResource("namespaces")

// IsConfiguration reports whether the write is about the configuration of admission itself. Webhooks do not see it, so
// that a wrong configuration can always be removed.
func (a *Attributes) IsConfiguration() bool {
	return a.Kind.Group == registrationv1.GroupName && slices.Contains([]string{
		"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration",
		"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
		"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding",
	}, a.Kind.Kind)
}

// Forbidden returns the error for a write that a plugin refuses.
//
// Source: k8s.io/apiserver v0.37.2 pkg/admission/errors.go.
func (a *Attributes) Forbidden(reason error) *apierrors.StatusError {
	name := cmp.Or(a.Name, "Unknown")
	if a.Name == "" && a.Object != nil {
		m, err := meta.Accessor(a.Object)
		switch {
		case err != nil:
			name = "Unknown/errorGettingName"
		case m.GetName() != "":
			name = m.GetName()
		case m.GetGenerateName() != "":
			name = m.GetGenerateName()
		}
	}
	return apierrors.NewForbidden(a.Resource.GroupResource(), name, reason)
}

// MatchRules returns the resource and the kind in which a plugin with these rules gets the write. ok is false if no
// rule matches. If none matches the resource of the request, and the policy is Equivalent, a rule may match the
// resource under which the object is served as well.
func (a *Attributes) MatchRules(rules []registrationv1.RuleWithOperations,
	policy *registrationv1.MatchPolicyType,
) (as Equivalent, ok bool, err error) {
	matches := func(gvr schema.GroupVersionResource) func(registrationv1.RuleWithOperations) bool {
		return func(r registrationv1.RuleWithOperations) bool { return a.matchRule(&r, gvr) }
	}
	if slices.ContainsFunc(rules, matches(a.Resource)) {
		return Equivalent{Resource: a.Resource, Kind: a.Kind}, true, nil
	}
	if policy == nil || *policy != registrationv1.Equivalent {
		return as, false, nil
	}
	others := a.Server.Equivalents()
	for _, r := range rules {
		for _, other := range others {
			if !matches(other.Resource)(r) {
				continue
			}
			if other.Kind.Empty() {
				return as, false, apierrors.NewInternalError(fmt.Errorf("unable to convert to %v: unknown kind",
					other.Resource))
			}
			return other, true, nil
		}
	}
	return as, false, nil
}

func (a *Attributes) matchRule(r *registrationv1.RuleWithOperations, gvr schema.GroupVersionResource) bool {
	operation := registrationv1.OperationType(a.Operation)
	return a.matchScope(r.Scope, gvr) &&
		(slices.Contains(r.Operations, registrationv1.OperationAll) || slices.Contains(r.Operations, operation)) &&
		includes(r.APIGroups, gvr.Group) && includes(r.APIVersions, gvr.Version) &&
		slices.ContainsFunc(r.Resources, func(pattern string) bool {
			name, sub, _ := strings.Cut(pattern, "/")
			return includes([]string{name}, gvr.Resource) && includes([]string{sub}, a.Subresource)
		})
}

// matchScope counts a Namespace as cluster-scoped, although its own name stands for its namespace.
func (a *Attributes) matchScope(scope *registrationv1.ScopeType, gvr schema.GroupVersionResource) bool {
	if scope == nil || *scope == registrationv1.AllScopes {
		return true
	}
	inNamespace := gvr != namespaces && a.Namespace != ""
	return inNamespace == (*scope == registrationv1.NamespacedScope)
}

// includes reports whether list has s or a wildcard.
func includes(list []string, s string) bool {
	return slices.Contains(list, "*") || slices.Contains(list, s)
}

// MatchNamespace reports whether the selector selects the namespace of the write. A Namespace that is being written is
// selected by its next state. Other cluster-scoped objects are always selected. Errors: NotFound, InternalError.
func (a *Attributes) MatchNamespace(ctx context.Context, selector labels.Selector) (bool, error) {
	isNamespace := a.Resource.Resource == namespaces.Resource
	if a.Namespace == "" && !isNamespace || selector.Empty() {
		return true, nil
	}
	if isNamespace && a.Subresource == "" && (a.Operation == admissionv1.Create || a.Operation == admissionv1.Update) {
		return selector.Matches(labels.Set(resource.Meta(a.Object).GetLabels())), nil
	}
	ns, err := a.Server.Namespace(ctx, a.Namespace)
	if err != nil {
		var status apierrors.APIStatus
		if !errors.As(err, &status) {
			err = apierrors.NewInternalError(err)
		}
		return false, err
	}
	return selector.Matches(labels.Set(ns.Labels)), nil
}

// MatchObject reports whether the selector selects the next or the present state of the object.
func (a *Attributes) MatchObject(selector labels.Selector) bool {
	return selector.Empty() || selects(selector, a.Object) || selects(selector, a.OldObject)
}

func selects(selector labels.Selector, obj runtime.Object) bool {
	if obj == nil {
		return false
	}
	m, err := meta.Accessor(obj)
	return err == nil && selector.Matches(labels.Set(m.GetLabels()))
}
