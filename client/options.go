package client

import (
	"cmp"
	"encoding/json"
	"net/url"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/flyball-dev/flyball/internal/misuse"
)

// The methods of an option tell which calls take it. The zero value of every options struct changes nothing.
type (
	// GetOption is an option of Get.
	GetOption interface{ ApplyToGet(o *ReadOptions) }
	// ListOption is an option of List.
	ListOption interface{ ApplyToList(o *ListOptions) }
	// WriteOption is an option of Create, Update, Patch and Apply.
	WriteOption interface{ ApplyToWrite(o *WriteOptions) }
	// DeleteOption is an option of Delete.
	DeleteOption interface{ ApplyToDelete(o *DeleteOptions) }
	// DeleteAllOfOption is an option of DeleteAllOf.
	DeleteAllOfOption interface{ ApplyToDeleteAllOf(o *DeleteAllOfOptions) }
)

// The names of controller-runtime for [WriteOption].
type (
	CreateOption            = WriteOption
	UpdateOption            = WriteOption
	PatchOption             = WriteOption
	ApplyOption             = WriteOption
	SubResourceCreateOption = WriteOption
	SubResourceUpdateOption = WriteOption
	SubResourcePatchOption  = WriteOption
	SubResourceApplyOption  = WriteOption
)

// applied combines opts. It skips nil options.
func applied[Option, Options any](opts []Option, apply func(Option, *Options)) (o Options) {
	if len(opts) == 0 {
		return o // Without an allocation.
	}
	all := new(Options)
	for _, opt := range opts {
		if !misuse.IsNil(opt) {
			apply(opt, all)
		}
	}
	return *all
}

// ReadOptions are the options of Get. Each is also an option of List.
type ReadOptions struct {
	// Live reads from the server instead of the cache.
	Live bool
	// LiveIfStale reads from the server where a reconcile would get [ErrStale].
	LiveIfStale bool
	// Lagging reads the cache as it is: it may miss own writes.
	Lagging bool
	// ReadOnly returns the objects of the cache instead of copies. The caller must not change them.
	ReadOnly bool
}

// Each of these sets one of [ReadOptions].
var (
	Live        = ReadOptions{Live: true}
	LiveIfStale = ReadOptions{LiveIfStale: true}
	Lagging     = ReadOptions{Lagging: true}
	ReadOnly    = ReadOptions{ReadOnly: true}
)

// UnsafeDisableDeepCopy is controller-runtime's name for [ReadOnly].
var UnsafeDisableDeepCopy = ReadOnly

// ApplyToGet implements [GetOption].
func (r ReadOptions) ApplyToGet(o *ReadOptions) {
	o.Live, o.LiveIfStale = o.Live || r.Live, o.LiveIfStale || r.LiveIfStale
	o.Lagging, o.ReadOnly = o.Lagging || r.Lagging, o.ReadOnly || r.ReadOnly
}

// ApplyToList implements [ListOption].
func (r ReadOptions) ApplyToList(o *ListOptions) { r.ApplyToGet(&o.ReadOptions) }

// ListOptions are the options of List.
type ListOptions struct {
	ReadOptions
	// Namespace is the namespace to list; "" means all.
	Namespace string
	// LabelSelector selects objects by their labels; nil selects all.
	LabelSelector labels.Selector
	// FieldSelector selects objects by their fields; nil selects all. In the cache it can only ask for exact values. A
	// field other than metadata.name and metadata.namespace then needs an index of that name; see [Cluster.IndexField].
	FieldSelector fields.Selector
	// Limit bounds the number of objects in the answer; zero means no limit. Continue is the token of the page before.
	// The token of a live list is valid for a live list only, that of a cached list for a cached list only. All pages
	// of a live list show one moment; each page of a cached list shows the moment of its call.
	Limit    int64
	Continue string
}

// ApplyToList implements [ListOption]. It sets the fields that l sets, and adds its selectors to those of o.
func (l ListOptions) ApplyToList(o *ListOptions) {
	l.ReadOptions.ApplyToList(o)
	MatchingLabelsSelector{l.LabelSelector}.ApplyToList(o)
	MatchingFieldsSelector{l.FieldSelector}.ApplyToList(o)
	o.Namespace = cmp.Or(l.Namespace, o.Namespace)
	o.Limit, o.Continue = cmp.Or(l.Limit, o.Limit), cmp.Or(l.Continue, o.Continue)
}

// noObject is a label selector that selects no object. [labels.Nothing] and [fields.Nothing] have no text, and the
// server takes all objects if there is no selector.
const noObject = "none,!none"

// params returns the query parameters of a list.
func (l ListOptions) params() url.Values {
	p := url.Values{}
	if l.FieldSelector != nil {
		setParam(p, "fieldSelector", l.FieldSelector.String())
	}
	if l.LabelSelector != nil {
		setParam(p, "labelSelector", l.LabelSelector.String())
	}
	if isNothing(l.LabelSelector) || isNothing(l.FieldSelector) {
		p.Set("labelSelector", noObject)
	}
	setParam(p, "continue", l.Continue)
	if l.Limit > 0 {
		p.Set("limit", strconv.FormatInt(l.Limit, 10))
	}
	return p
}

// setParam sets a query parameter unless value is "".
func setParam(p url.Values, name, value string) {
	if value != "" {
		p.Set(name, value)
	}
}

// isNothing reports whether a selector, which may be nil, is labels.Nothing or fields.Nothing.
func isNothing(selector interface {
	Empty() bool
	String() string
},
) bool {
	return selector != nil && !selector.Empty() && selector.String() == ""
}

// selection is an option of List and of DeleteAllOf.
type selection func(o *ListOptions)

func (f selection) ApplyToList(o *ListOptions)               { f(o) }
func (f selection) ApplyToDeleteAllOf(o *DeleteAllOfOptions) { f(&o.ListOptions) }

// InNamespace selects the objects of a namespace.
func InNamespace(namespace string) interface {
	ListOption
	DeleteAllOfOption
} {
	return selection(func(o *ListOptions) { o.Namespace = namespace })
}

// MatchingLabelsSelector selects the objects whose labels match the selector. A nil selector selects all.
type MatchingLabelsSelector struct{ labels.Selector }

// ApplyToList implements [ListOption].
func (m MatchingLabelsSelector) ApplyToList(o *ListOptions) {
	if m.Selector != nil {
		o.LabelSelector = both(o.LabelSelector, m.Selector)
	}
}

// ApplyToDeleteAllOf implements [DeleteAllOfOption].
func (m MatchingLabelsSelector) ApplyToDeleteAllOf(o *DeleteAllOfOptions) {
	m.ApplyToList(&o.ListOptions)
}

// both returns a selector for the objects that a and b both select. A nil a selects all.
func both(a, b labels.Selector) labels.Selector {
	if a == nil {
		return b
	}
	requirements, selectable := b.Requirements()
	if !selectable {
		return labels.Nothing()
	}
	return a.Add(requirements...)
}

// MatchingLabels selects the objects that have all of these labels. A key or a value that is not valid in a label
// selects nothing.
type MatchingLabels map[string]string

// ApplyToList implements [ListOption].
func (m MatchingLabels) ApplyToList(o *ListOptions) {
	selector := labels.SelectorFromSet(labels.Set(m))
	for key, value := range m {
		if len(validation.IsQualifiedName(key)) > 0 || len(validation.IsValidLabelValue(value)) > 0 {
			selector = labels.Nothing()
		}
	}
	o.LabelSelector = both(o.LabelSelector, selector)
}

// ApplyToDeleteAllOf implements [DeleteAllOfOption].
func (m MatchingLabels) ApplyToDeleteAllOf(o *DeleteAllOfOptions) { m.ApplyToList(&o.ListOptions) }

// HasLabels selects the objects that have all of these label keys, with any value.
type HasLabels []string

// ApplyToList implements [ListOption].
func (h HasLabels) ApplyToList(o *ListOptions) {
	for _, key := range h {
		one, err := labels.Parse(key)
		if err != nil {
			one = labels.Nothing()
		}
		o.LabelSelector = both(o.LabelSelector, one)
	}
}

// ApplyToDeleteAllOf implements [DeleteAllOfOption].
func (h HasLabels) ApplyToDeleteAllOf(o *DeleteAllOfOptions) { h.ApplyToList(&o.ListOptions) }

// MatchingFields selects the objects whose fields have these values; see [ListOptions].
type MatchingFields fields.Set

// ApplyToList implements [ListOption].
func (m MatchingFields) ApplyToList(o *ListOptions) {
	MatchingFieldsSelector{fields.Set(m).AsSelector()}.ApplyToList(o)
}

// ApplyToDeleteAllOf implements [DeleteAllOfOption].
func (m MatchingFields) ApplyToDeleteAllOf(o *DeleteAllOfOptions) { m.ApplyToList(&o.ListOptions) }

// MatchingFieldsSelector selects the objects whose fields match the selector; see [ListOptions]. A nil selector selects
// all.
type MatchingFieldsSelector struct{ fields.Selector }

// ApplyToList implements [ListOption].
func (m MatchingFieldsSelector) ApplyToList(o *ListOptions) {
	switch {
	case m.Selector == nil, isNothing(o.FieldSelector):
	case o.FieldSelector == nil, isNothing(m.Selector):
		o.FieldSelector = m.Selector
	default:
		o.FieldSelector = fields.AndSelectors(o.FieldSelector, m.Selector)
	}
}

// ApplyToDeleteAllOf implements [DeleteAllOfOption].
func (m MatchingFieldsSelector) ApplyToDeleteAllOf(o *DeleteAllOfOptions) {
	m.ApplyToList(&o.ListOptions)
}

// Limit sets the Limit of [ListOptions].
func Limit(most int64) ListOption { return selection(func(o *ListOptions) { o.Limit = most }) }

// Continue sets the Continue of [ListOptions].
func Continue(token string) ListOption { return selection(func(o *ListOptions) { o.Continue = token }) }

// WriteOptions are the options of Create, Update, Patch and Apply.
type WriteOptions struct {
	// FieldManager owns the written fields. Empty means the one of [Options].
	FieldManager string
	// DryRun makes the server do everything but store the object. Reads do not show such a write.
	DryRun bool
	// Force takes over fields that other field managers own. It is for patches of type apply only.
	Force bool
	// FieldValidation is "Strict", "Warn" or "Ignore". If it is empty the server chooses.
	FieldValidation string
	// Body is the object to update or patch a subresource with. Nil means the object itself.
	Body Object
}

// ApplyToWrite implements [WriteOption]. It sets the fields that w sets.
func (w WriteOptions) ApplyToWrite(o *WriteOptions) {
	o.FieldManager = cmp.Or(w.FieldManager, o.FieldManager)
	o.DryRun, o.Force = o.DryRun || w.DryRun, o.Force || w.Force
	o.FieldValidation = cmp.Or(w.FieldValidation, o.FieldValidation)
	if w.Body != nil {
		o.Body = w.Body
	}
}

// params returns the query parameters of a write.
func (w WriteOptions) params() url.Values {
	if w == (WriteOptions{}) {
		return nil
	}
	p := url.Values{}
	if w.DryRun {
		p.Set("dryRun", metav1.DryRunAll)
	}
	if w.Force {
		p.Set("force", "true")
	}
	setParam(p, "fieldManager", w.FieldManager)
	setParam(p, "fieldValidation", w.FieldValidation)
	return p
}

type writeOption func(o *WriteOptions)

func (f writeOption) ApplyToWrite(o *WriteOptions) { f(o) }

// FieldOwner is the field manager of the written fields.
type FieldOwner string

// ApplyToWrite implements [WriteOption].
func (f FieldOwner) ApplyToWrite(o *WriteOptions) { o.FieldManager = string(f) }

// WithSubResourceBody updates or patches a subresource with body instead of the object itself.
func WithSubResourceBody(body Object) WriteOption {
	return writeOption(func(o *WriteOptions) { o.Body = body })
}

var (
	// ForceOwnership lets an apply take over the fields that it changes from other field managers.
	ForceOwnership WriteOption = writeOption(func(o *WriteOptions) { o.Force = true })
	// StrictFields makes the server refuse unknown fields.
	StrictFields WriteOption = writeOption(func(o *WriteOptions) { o.FieldValidation = "Strict" })
	// DryRunAll makes the server do everything but store the change. It is an option of all writes and deletions.
	DryRunAll = dryRun{}
)

type dryRun struct{}

func (dryRun) ApplyToWrite(o *WriteOptions)             { o.DryRun = true }
func (dryRun) ApplyToDelete(o *DeleteOptions)           { o.DryRun = true }
func (dryRun) ApplyToDeleteAllOf(o *DeleteAllOfOptions) { o.DryRun = true }

// DeleteOptions are the options of Delete.
type DeleteOptions struct {
	// GracePeriodSeconds is how long the object may take to shut down. Nil means the default of its kind.
	GracePeriodSeconds *int64
	// Preconditions make the server refuse the deletion unless the object has the given UID and resource version.
	Preconditions *metav1.Preconditions
	// PropagationPolicy decides about the objects that the deleted one owns. Nil means the default of its kind.
	PropagationPolicy *metav1.DeletionPropagation
	// DryRun is as in [WriteOptions].
	DryRun bool
}

// ApplyToDelete implements [DeleteOption]. It sets the fields that o sets.
func (o DeleteOptions) ApplyToDelete(to *DeleteOptions) {
	to.GracePeriodSeconds = cmp.Or(o.GracePeriodSeconds, to.GracePeriodSeconds)
	to.PropagationPolicy = cmp.Or(o.PropagationPolicy, to.PropagationPolicy)
	if o.Preconditions != nil {
		Preconditions(*o.Preconditions).ApplyToDelete(to)
	}
	to.DryRun = to.DryRun || o.DryRun
}

// ApplyToDeleteAllOf implements [DeleteAllOfOption].
func (o DeleteAllOfOptions) ApplyToDeleteAllOf(to *DeleteAllOfOptions) {
	o.ListOptions.ApplyToList(&to.ListOptions)
	o.DeleteOptions.ApplyToDelete(&to.DeleteOptions)
}

// params returns the query parameters of a deletion. The server uses the body; the parameters show in its logs.
func (o DeleteOptions) params() url.Values { return WriteOptions{DryRun: o.DryRun}.params() }

// DeleteAllOfOptions are the options of DeleteAllOf.
type DeleteAllOfOptions struct {
	ListOptions
	DeleteOptions
}

func (o DeleteOptions) body() []byte {
	d := metav1.DeleteOptions{
		TypeMeta:           metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"},
		GracePeriodSeconds: o.GracePeriodSeconds, Preconditions: o.Preconditions,
		PropagationPolicy: o.PropagationPolicy,
	}
	if o.DryRun {
		d.DryRun = []string{metav1.DryRunAll}
	}
	data, err := json.Marshal(d)
	if err != nil {
		panic(err) // All of its fields can be encoded.
	}
	return data
}

type deleteOption func(o *DeleteOptions)

func (f deleteOption) ApplyToDelete(o *DeleteOptions)           { f(o) }
func (f deleteOption) ApplyToDeleteAllOf(o *DeleteAllOfOptions) { f(&o.DeleteOptions) }

// GracePeriodSeconds sets how long an object may take to shut down.
func GracePeriodSeconds(seconds int64) interface {
	DeleteOption
	DeleteAllOfOption
} {
	return deleteOption(func(o *DeleteOptions) { o.GracePeriodSeconds = &seconds })
}

// PropagationPolicy decides about the objects that the deleted one owns.
func PropagationPolicy(policy metav1.DeletionPropagation) interface {
	DeleteOption
	DeleteAllOfOption
} {
	return deleteOption(func(o *DeleteOptions) { o.PropagationPolicy = &policy })
}

// Preconditions makes the server refuse the deletion unless the object has this UID and this resource version. An empty
// one is not checked.
type Preconditions metav1.Preconditions

// ApplyToDelete implements [DeleteOption].
func (p Preconditions) ApplyToDelete(o *DeleteOptions) {
	if before := o.Preconditions; before != nil {
		p.UID, p.ResourceVersion = cmp.Or(p.UID, before.UID), cmp.Or(p.ResourceVersion, before.ResourceVersion)
	}
	o.Preconditions = (*metav1.Preconditions)(&p)
}

// OnlyThis returns the precondition that the object has the UID of obj: it is not another one of the same name.
func OnlyThis(obj metav1.Object) Preconditions {
	uid := obj.GetUID()
	return Preconditions{UID: (*types.UID)(&uid)}
}
