package client

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/url"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/flyball-dev/flyball/internal/misuse"
)

// An option says by its methods where it applies. The zero value of every struct below is no option.
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

// applied returns what the options say together. Nil ones, as client-go's callers write where there are none, say
// nothing.
func applied[Option, Options any](opts []Option, apply func(Option, *Options)) (o Options) {
	if len(opts) == 0 {
		return o // without an allocation
	}
	all := new(Options)
	for _, opt := range opts {
		if !misuse.IsNil(opt) {
			apply(opt, all)
		}
	}
	return *all
}

// ReadOptions say where a read is answered, and what the caller gets. They are options themselves.
type ReadOptions struct {
	// Live asks the server, not the cache.
	Live bool
	// LiveIfStale asks the server when the cache cannot tell what this process wrote, where a reconcile would get
	// [ErrStale].
	LiveIfStale bool
	// Lagging reads the cache as it is, own writes or not.
	Lagging bool
	// ReadOnly shares memory with the cache instead of copying: nothing that was read may be changed.
	ReadOnly bool
}

// The options of reads.
var (
	Live        = ReadOptions{Live: true}
	LiveIfStale = ReadOptions{LiveIfStale: true}
	Lagging     = ReadOptions{Lagging: true}
	ReadOnly    = ReadOptions{ReadOnly: true}
)

// ApplyToGet implements [GetOption].
func (r ReadOptions) ApplyToGet(o *ReadOptions) {
	o.Live, o.LiveIfStale = o.Live || r.Live, o.LiveIfStale || r.LiveIfStale
	o.Lagging, o.ReadOnly = o.Lagging || r.Lagging, o.ReadOnly || r.ReadOnly
}

// ApplyToList implements [ListOption].
func (r ReadOptions) ApplyToList(o *ListOptions) { r.ApplyToGet(&o.ReadOptions) }

// ListOptions say what is listed, and where.
type ListOptions struct {
	ReadOptions
	// Namespace restricts to one; "" is all.
	Namespace string
	// Labels selects by label; nil selects all.
	Labels labels.Selector
	// Fields selects by field, exactly. From the cache, each field but metadata.name and metadata.namespace needs an
	// index of that name; see [Cluster.IndexField].
	Fields fields.Set
	// Limit is the number of objects that are listed at most; zero is all. Continue is the token of the page before:
	// only a live list goes on with the token of a live list, and only a list from the cache with one of the cache's.
	// The pages of a live list are of one moment, those of the cache of one moment each.
	Limit    int64
	Continue string
}

// ApplyToList implements [ListOption]: the fields that are set count, and selectors are added to those of other
// options.
func (l ListOptions) ApplyToList(o *ListOptions) {
	l.ReadOptions.ApplyToList(o)
	MatchingLabelsSelector(l.Labels).ApplyToList(o)
	if len(l.Fields) > 0 {
		MatchingFields(l.Fields).ApplyToList(o)
	}
	o.Namespace = cmp.Or(l.Namespace, o.Namespace)
	o.Limit, o.Continue = cmp.Or(l.Limit, o.Limit), cmp.Or(l.Continue, o.Continue)
}

// params says to the server what is listed.
func (l ListOptions) params() url.Values {
	p := url.Values{}
	if l.Labels != nil && !l.Labels.Empty() {
		p.Set("labelSelector", l.Labels.String())
	}
	if len(l.Fields) > 0 {
		p.Set("fieldSelector", l.Fields.AsSelector().String())
	}
	if l.Limit > 0 {
		p.Set("limit", strconv.FormatInt(l.Limit, 10))
	}
	if l.Continue != "" {
		p.Set("continue", l.Continue)
	}
	return p
}

// selection is an option that selects objects: from a list, or to be deleted.
type selection func(o *ListOptions)

func (f selection) ApplyToList(o *ListOptions)               { f(o) }
func (f selection) ApplyToDeleteAllOf(o *DeleteAllOfOptions) { f(&o.ListOptions) }

// InNamespace restricts to a namespace.
func InNamespace(namespace string) interface {
	ListOption
	DeleteAllOfOption
} {
	return selection(func(o *ListOptions) { o.Namespace = namespace })
}

// MatchingLabelsSelector selects by a selector; a nil one selects all.
func MatchingLabelsSelector(selector labels.Selector) interface {
	ListOption
	DeleteAllOfOption
} {
	return selection(func(o *ListOptions) {
		if selector != nil {
			o.Labels = both(o.Labels, selector)
		}
	})
}

// both selects what two selectors select, of which the first may be nil.
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

// MatchingLabels selects the objects that have all of these labels. A key or value that can be no label selects
// nothing.
type MatchingLabels map[string]string

// ApplyToList implements [ListOption].
func (m MatchingLabels) ApplyToList(o *ListOptions) {
	selector := labels.SelectorFromSet(labels.Set(m))
	for key, value := range m {
		if len(validation.IsQualifiedName(key)) > 0 || len(validation.IsValidLabelValue(value)) > 0 {
			selector = labels.Nothing()
		}
	}
	o.Labels = both(o.Labels, selector)
}

// ApplyToDeleteAllOf implements [DeleteAllOfOption].
func (m MatchingLabels) ApplyToDeleteAllOf(o *DeleteAllOfOptions) { m.ApplyToList(&o.ListOptions) }

// HasLabels selects the objects that have these label keys, with whatever value.
type HasLabels []string

// ApplyToList implements [ListOption].
func (h HasLabels) ApplyToList(o *ListOptions) {
	for _, key := range h {
		one, err := labels.Parse(key)
		if err != nil {
			one = labels.Nothing()
		}
		o.Labels = both(o.Labels, one)
	}
}

// ApplyToDeleteAllOf implements [DeleteAllOfOption].
func (h HasLabels) ApplyToDeleteAllOf(o *DeleteAllOfOptions) { h.ApplyToList(&o.ListOptions) }

// MatchingFields selects the objects whose fields have these values; see [ListOptions].
type MatchingFields fields.Set

// ApplyToList implements [ListOption].
func (m MatchingFields) ApplyToList(o *ListOptions) {
	all := fields.Set{}
	maps.Copy(all, o.Fields)
	maps.Copy(all, m)
	o.Fields = all
}

// ApplyToDeleteAllOf implements [DeleteAllOfOption].
func (m MatchingFields) ApplyToDeleteAllOf(o *DeleteAllOfOptions) { m.ApplyToList(&o.ListOptions) }

// Limit is the number of objects that a list returns at most; see [ListOptions].
func Limit(most int64) ListOption { return selection(func(o *ListOptions) { o.Limit = most }) }

// Continue reads the page of a list that the token of the page before names.
func Continue(token string) ListOption { return selection(func(o *ListOptions) { o.Continue = token }) }

// WriteOptions are those of Create, Update, Patch and Apply.
type WriteOptions struct {
	// FieldManager owns the fields that are written; "" leaves it to the client's own.
	FieldManager string
	// DryRun makes the server do everything but store. Such a write is not remembered.
	DryRun bool
	// Force takes fields from their owners: patches of type apply only.
	Force bool
	// FieldValidation is "Strict", "Warn" or "Ignore"; "" leaves it to the server.
	FieldValidation string
	// Body is what a subresource is updated or patched with; nil is the object itself.
	Body Object
}

// ApplyToWrite implements [WriteOption]: the fields that are set count.
func (w WriteOptions) ApplyToWrite(o *WriteOptions) {
	o.FieldManager = cmp.Or(w.FieldManager, o.FieldManager)
	o.DryRun, o.Force = o.DryRun || w.DryRun, o.Force || w.Force
	o.FieldValidation = cmp.Or(w.FieldValidation, o.FieldValidation)
	if w.Body != nil {
		o.Body = w.Body
	}
}

func (w WriteOptions) params() url.Values {
	if w == (WriteOptions{}) {
		return nil
	}
	p := url.Values{}
	if w.DryRun {
		p.Set("dryRun", metav1.DryRunAll)
	}
	if w.FieldManager != "" {
		p.Set("fieldManager", w.FieldManager)
	}
	if w.Force {
		p.Set("force", "true")
	}
	if w.FieldValidation != "" {
		p.Set("fieldValidation", w.FieldValidation)
	}
	return p
}

type writeOption func(o *WriteOptions)

func (f writeOption) ApplyToWrite(o *WriteOptions) { f(o) }

// FieldOwner names the owner of the written fields.
func FieldOwner(name string) WriteOption {
	return writeOption(func(o *WriteOptions) { o.FieldManager = name })
}

// WithSubResourceBody is what a subresource is updated or patched with, where that is not the object itself.
func WithSubResourceBody(body Object) WriteOption {
	return writeOption(func(o *WriteOptions) { o.Body = body })
}

var (
	// ForceOwnership takes fields that an apply conflicts about from their owners.
	ForceOwnership WriteOption = writeOption(func(o *WriteOptions) { o.Force = true })
	// StrictFields makes the server refuse fields that it does not know.
	StrictFields WriteOption = writeOption(func(o *WriteOptions) { o.FieldValidation = "Strict" })
	// DryRunAll makes the server do everything but store. It is an option of all writes and deletions.
	DryRunAll = dryRun{}
)

type dryRun struct{}

func (dryRun) ApplyToWrite(o *WriteOptions)             { o.DryRun = true }
func (dryRun) ApplyToDelete(o *DeleteOptions)           { o.DryRun = true }
func (dryRun) ApplyToDeleteAllOf(o *DeleteAllOfOptions) { o.DryRun = true }

// DeleteOptions say how objects are deleted.
type DeleteOptions struct {
	// GracePeriodSeconds is nil for the kind's own.
	GracePeriodSeconds *int64
	// Preconditions refuse the deletion of another object than meant.
	Preconditions *metav1.Preconditions
	// PropagationPolicy is nil for the kind's own.
	PropagationPolicy *metav1.DeletionPropagation
	// DryRun is as in [WriteOptions].
	DryRun bool
}

// params repeats in the address what logs should show. The server goes by the body.
func (o DeleteOptions) params() url.Values { return WriteOptions{DryRun: o.DryRun}.params() }

// DeleteAllOfOptions say what is deleted, and how.
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
		panic(err) // Nothing in them cannot be encoded.
	}
	return data
}

type deleteOption func(o *DeleteOptions)

func (f deleteOption) ApplyToDelete(o *DeleteOptions)           { f(o) }
func (f deleteOption) ApplyToDeleteAllOf(o *DeleteAllOfOptions) { f(&o.DeleteOptions) }

// GracePeriodSeconds is the time an object gets to end.
func GracePeriodSeconds(seconds int64) interface {
	DeleteOption
	DeleteAllOfOption
} {
	return deleteOption(func(o *DeleteOptions) { o.GracePeriodSeconds = &seconds })
}

// PropagationPolicy says what becomes of the objects that the deleted one owns.
func PropagationPolicy(policy metav1.DeletionPropagation) interface {
	DeleteOption
	DeleteAllOfOption
} {
	return deleteOption(func(o *DeleteOptions) { o.PropagationPolicy = &policy })
}

// Preconditions deletes only the object that has this UID and resource version, where they are set.
type Preconditions metav1.Preconditions

// ApplyToDelete implements [DeleteOption].
func (p Preconditions) ApplyToDelete(o *DeleteOptions) {
	if before := o.Preconditions; before != nil {
		p.UID, p.ResourceVersion = cmp.Or(p.UID, before.UID), cmp.Or(p.ResourceVersion, before.ResourceVersion)
	}
	o.Preconditions = (*metav1.Preconditions)(&p)
}

// OnlyThis is the precondition that obj itself is deleted, not another of its name.
func OnlyThis(obj metav1.Object) Preconditions {
	uid := obj.GetUID()
	return Preconditions{UID: (*types.UID)(&uid)}
}
