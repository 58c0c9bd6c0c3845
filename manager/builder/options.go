package builder

import (
	"cmp"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/reconcile/predicate"
)

// WatchOptions configures the watch of a kind. Several are merged; [WithPredicates], [OnlyMetadata] and
// [MatchEveryOwner] are short forms. The zero value watches all objects, in full.
type WatchOptions struct {
	// Predicates must all accept an event for it to pass.
	Predicates []PredicateFunc
	// OnlyMetadata caches only the metadata of the objects. Events then hold *metav1.PartialObjectMetadata.
	OnlyMetadata bool
	// EveryOwner makes Owns enqueue every owner of the right kind, not only the controller owner.
	EveryOwner bool
	// Namespaces restricts the cache; nil means the manager's namespaces. Options of the cache that are not set here
	// are those of Options.Caches of the manager.
	Namespaces []string
	// LabelSelector and FieldSelector restrict the cache; the server evaluates them. Caches with different selectors
	// are different caches, so readers must ask for the same selectors.
	LabelSelector, FieldSelector string
	// Transform is applied to every object before it is cached, after the manager's transform. It requires a
	// TransformName: inputs with the same name share a cache.
	Transform     func(informer.Object) (informer.Object, error)
	TransformName string
}

// OnlyMetadata watches only the metadata.
var OnlyMetadata = WatchOptions{OnlyMetadata: true}

// MatchEveryOwner makes Owns enqueue every owner, not only the controller owner.
var MatchEveryOwner = WatchOptions{EveryOwner: true}

// WithPredicates restricts the events to those that all of ps accept.
func WithPredicates(ps ...Predicate) (o WatchOptions) {
	for _, p := range ps {
		o.Predicates = append(o.Predicates, predicate.Of(p))
	}
	return o
}

// Merge combines several options: later values override earlier ones, and lists are concatenated.
func Merge(options ...WatchOptions) (all WatchOptions) {
	for _, o := range options {
		all.Predicates = append(all.Predicates, o.Predicates...)
		all.OnlyMetadata = all.OnlyMetadata || o.OnlyMetadata
		all.EveryOwner = all.EveryOwner || o.EveryOwner
		all.Namespaces = append(all.Namespaces, o.Namespaces...)
		all.LabelSelector = cmp.Or(o.LabelSelector, all.LabelSelector)
		all.FieldSelector = cmp.Or(o.FieldSelector, all.FieldSelector)
		if o.Transform != nil {
			all.Transform, all.TransformName = o.Transform, o.TransformName
		}
	}
	return all
}

// Restrict returns given with the cache options that are set in o.
func (o WatchOptions) Restrict(given informer.InformerOptions) informer.InformerOptions {
	if o.Namespaces != nil {
		given.Namespaces = o.Namespaces
	}
	given.LabelSelector = cmp.Or(o.LabelSelector, given.LabelSelector)
	given.FieldSelector = cmp.Or(o.FieldSelector, given.FieldSelector)
	if o.Transform != nil {
		given.Transform, given.TransformName = o.Transform, o.TransformName
	}
	return given
}
