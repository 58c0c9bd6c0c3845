package client

import (
	"encoding/json"
	"fmt"
	"net/url"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/flyball-dev/flyball/internal/misuse"
)

// Each option is a small type that says by its methods where it applies. The zero value of every struct below is no
// option.

// GetOption is an option of Get.
type GetOption interface{ ApplyToGet(o *ReadOptions) }

// ListOption is an option of List.
type ListOption interface{ ApplyToList(o *ListOptions) }

// ReadOptions say where a read is answered, and what the caller gets. They are options themselves.
type ReadOptions struct {
	// Live asks the server, not the cache.
	Live bool
	// LiveIfStale asks the server when the cache cannot tell what this process wrote.
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
	// Limit and Continue page through a live list. The cache is always read whole.
	Limit    int64
	Continue string
}

// ApplyToList implements [ListOption]: it replaces everything.
func (l ListOptions) ApplyToList(o *ListOptions) { *o = l }

// InNamespace restricts to a namespace.
type InNamespace string

// ApplyToList implements [ListOption].
func (n InNamespace) ApplyToList(o *ListOptions) { o.Namespace = string(n) }

// ApplyToDeleteAllOf implements [DeleteAllOfOption].
func (n InNamespace) ApplyToDeleteAllOf(o *DeleteAllOfOptions) { n.ApplyToList(&o.ListOptions) }

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
	also(o, selector)
}

// ApplyToDeleteAllOf implements [DeleteAllOfOption].
func (m MatchingLabels) ApplyToDeleteAllOf(o *DeleteAllOfOptions) { m.ApplyToList(&o.ListOptions) }

// also adds a selector to those that are there.
func also(o *ListOptions, selector labels.Selector) {
	if o.Labels == nil {
		o.Labels = selector
		return
	}
	requirements, selectable := selector.Requirements()
	if !selectable {
		o.Labels = labels.Nothing()
		return
	}
	o.Labels = o.Labels.Add(requirements...)
}

// HasLabels selects the objects that have these label keys, with whatever value.
type HasLabels []string

// ApplyToList implements [ListOption].
func (h HasLabels) ApplyToList(o *ListOptions) {
	selector := labels.NewSelector()
	for _, key := range h {
		one, err := labels.Parse(key)
		if err != nil {
			one = labels.Nothing()
		}
		each := ListOptions{Labels: selector}
		also(&each, one)
		selector = each.Labels
	}
	also(o, selector)
}

// ApplyToDeleteAllOf implements [DeleteAllOfOption].
func (h HasLabels) ApplyToDeleteAllOf(o *DeleteAllOfOptions) { h.ApplyToList(&o.ListOptions) }

// MatchingLabelsSelector selects by a selector.
type MatchingLabelsSelector struct{ labels.Selector }

// ApplyToList implements [ListOption].
func (m MatchingLabelsSelector) ApplyToList(o *ListOptions) {
	if m.Selector != nil {
		also(o, m.Selector)
	}
}

// ApplyToDeleteAllOf implements [DeleteAllOfOption].
func (m MatchingLabelsSelector) ApplyToDeleteAllOf(o *DeleteAllOfOptions) {
	m.ApplyToList(&o.ListOptions)
}

// MatchingFields selects the objects whose fields have these values; see [ListOptions].
type MatchingFields fields.Set

// ApplyToList implements [ListOption].
func (m MatchingFields) ApplyToList(o *ListOptions) {
	all := fields.Set{}
	for _, set := range []fields.Set{o.Fields, fields.Set(m)} {
		for field, value := range set {
			all[field] = value
		}
	}
	o.Fields = all
}

// ApplyToDeleteAllOf implements [DeleteAllOfOption].
func (m MatchingFields) ApplyToDeleteAllOf(o *DeleteAllOfOptions) { m.ApplyToList(&o.ListOptions) }

// Limit is the number of objects that a live list returns at most.
type Limit int64

// ApplyToList implements [ListOption].
func (l Limit) ApplyToList(o *ListOptions) { o.Limit = int64(l) }

// Continue is the token of the page before, for a live list.
type Continue string

// ApplyToList implements [ListOption].
func (c Continue) ApplyToList(o *ListOptions) { o.Continue = string(c) }

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

func (o WriteOptions) params() url.Values {
	p := url.Values{}
	if o.FieldManager != "" {
		p.Set("fieldManager", o.FieldManager)
	}
	if o.DryRun {
		p.Set("dryRun", metav1.DryRunAll)
	}
	if o.Force {
		p.Set("force", "true")
	}
	if o.FieldValidation != "" {
		p.Set("fieldValidation", o.FieldValidation)
	}
	return p
}

// CreateOption is an option of Create.
type CreateOption interface{ ApplyToCreate(o *WriteOptions) }

// UpdateOption is an option of Update.
type UpdateOption interface{ ApplyToUpdate(o *WriteOptions) }

// PatchOption is an option of Patch.
type PatchOption interface{ ApplyToPatch(o *WriteOptions) }

// ApplyOption is an option of Apply.
type ApplyOption interface{ ApplyToApply(o *WriteOptions) }

// writeOption is a function that is an option of every write.
type writeOption func(o *WriteOptions)

func (f writeOption) ApplyToCreate(o *WriteOptions) { f(o) }
func (f writeOption) ApplyToUpdate(o *WriteOptions) { f(o) }
func (f writeOption) ApplyToPatch(o *WriteOptions)  { f(o) }
func (f writeOption) ApplyToApply(o *WriteOptions)  { f(o) }

// FieldOwner names the owner of the written fields.
type FieldOwner string

// ApplyToCreate implements [CreateOption].
func (f FieldOwner) ApplyToCreate(o *WriteOptions) { o.FieldManager = string(f) }

// ApplyToUpdate implements [UpdateOption].
func (f FieldOwner) ApplyToUpdate(o *WriteOptions) { o.FieldManager = string(f) }

// ApplyToPatch implements [PatchOption].
func (f FieldOwner) ApplyToPatch(o *WriteOptions) { o.FieldManager = string(f) }

// ApplyToApply implements [ApplyOption].
func (f FieldOwner) ApplyToApply(o *WriteOptions) { o.FieldManager = string(f) }

// ForceOwnership takes fields that an apply conflicts about from their owners.
var ForceOwnership = writeOption(func(o *WriteOptions) { o.Force = true })

// StrictFields makes the server refuse fields that it does not know.
var StrictFields = writeOption(func(o *WriteOptions) { o.FieldValidation = "Strict" })

// DryRunAll makes the server do everything but store.
var DryRunAll = dryRun{}

type dryRun struct{}

func (dryRun) ApplyToCreate(o *WriteOptions)            { o.DryRun = true }
func (dryRun) ApplyToUpdate(o *WriteOptions)            { o.DryRun = true }
func (dryRun) ApplyToPatch(o *WriteOptions)             { o.DryRun = true }
func (dryRun) ApplyToApply(o *WriteOptions)             { o.DryRun = true }
func (dryRun) ApplyToDelete(o *DeleteOptions)           { o.DryRun = true }
func (dryRun) ApplyToDeleteAllOf(o *DeleteAllOfOptions) { o.DryRun = true }

// WithSubResourceBody is what a subresource is updated or patched with, where that is not the object itself.
func WithSubResourceBody(body Object) interface {
	UpdateOption
	PatchOption
} {
	return writeOption(func(o *WriteOptions) { o.Body = body })
}

// given are the options but those that are nil, as client-go's callers write where there are none.
func given[O any](opts []O) []O {
	for i, o := range opts {
		if misuse.IsNil(o) {
			return append(opts[:i:i], given(opts[i+1:])...)
		}
	}
	return opts
}

// DeleteOption is an option of Delete.
type DeleteOption interface{ ApplyToDelete(o *DeleteOptions) }

// DeleteAllOfOption is an option of DeleteAllOf.
type DeleteAllOfOption interface{ ApplyToDeleteAllOf(o *DeleteAllOfOptions) }

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
func (o DeleteOptions) params() url.Values {
	p := url.Values{}
	if o.DryRun {
		p.Set("dryRun", metav1.DryRunAll)
	}
	return p
}

func (o DeleteOptions) body() ([]byte, error) {
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
		return nil, fmt.Errorf("encode delete options: %w", err)
	}
	return data, nil
}

// DeleteAllOfOptions say what is deleted, and how.
type DeleteAllOfOptions struct {
	ListOptions
	DeleteOptions
}

// GracePeriodSeconds is the time an object gets to end.
type GracePeriodSeconds int64

// ApplyToDelete implements [DeleteOption].
func (g GracePeriodSeconds) ApplyToDelete(o *DeleteOptions) { o.GracePeriodSeconds = (*int64)(&g) }

// ApplyToDeleteAllOf implements [DeleteAllOfOption].
func (g GracePeriodSeconds) ApplyToDeleteAllOf(o *DeleteAllOfOptions) {
	g.ApplyToDelete(&o.DeleteOptions)
}

// PropagationPolicy says what becomes of the objects that the deleted one owns.
type PropagationPolicy metav1.DeletionPropagation

// ApplyToDelete implements [DeleteOption].
func (p PropagationPolicy) ApplyToDelete(o *DeleteOptions) {
	o.PropagationPolicy = (*metav1.DeletionPropagation)(&p)
}

// ApplyToDeleteAllOf implements [DeleteAllOfOption].
func (p PropagationPolicy) ApplyToDeleteAllOf(o *DeleteAllOfOptions) {
	p.ApplyToDelete(&o.DeleteOptions)
}

// Preconditions deletes only the object that has this UID and resource version, where they are set.
type Preconditions metav1.Preconditions

// ApplyToDelete implements [DeleteOption].
func (p Preconditions) ApplyToDelete(o *DeleteOptions) {
	o.Preconditions = (*metav1.Preconditions)(&p)
}

// OnlyThis is the precondition that obj itself is deleted, not another of its name.
func OnlyThis(obj metav1.Object) Preconditions {
	uid := obj.GetUID()
	return Preconditions{UID: (*types.UID)(&uid)}
}
