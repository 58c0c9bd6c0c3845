package builder

import "github.com/flyball-dev/flyball/informer"

// WatchOptions say what of a kind is watched, and how. Several are merged; [WithPredicates], [OnlyMetadata] and
// [MatchEveryOwner] are short forms. The zero value is all objects, whole.
type WatchOptions struct {
	// Predicates must all let an event pass.
	Predicates []Predicate
	// OnlyMetadata has the objects' metadata alone in the cache: events are of *metav1.PartialObjectMetadata.
	OnlyMetadata bool
	// EveryOwner makes Owns ask for each owner of the right kind, not only for the one that is the controller.
	EveryOwner bool
	// Namespaces restricts the cache; nil means the manager's. What is not said here about the cache, and is in Options.Caches
	// of the manager, is as there.
	Namespaces []string
	// LabelSelector and FieldSelector restrict the cache, evaluated by the server. Caches of different selectors are
	// different caches: who reads must ask for the same.
	LabelSelector, FieldSelector string
	// Transform is applied to every object before it is cached, after that of the manager. TransformName is then required:
	// who gives the same name shares a cache.
	Transform     func(informer.Object) (informer.Object, error)
	TransformName string
}

// OnlyMetadata watches metadata alone.
var OnlyMetadata = WatchOptions{OnlyMetadata: true}

// MatchEveryOwner makes Owns ask for each owner, not only for the controller.
var MatchEveryOwner = WatchOptions{EveryOwner: true}

// WithPredicates lets only the events pass that all of ps let pass.
func WithPredicates(ps ...Predicate) WatchOptions { return WatchOptions{Predicates: ps} }

// Merge makes one of several: what is said later counts, and lists grow.
func Merge(options ...WatchOptions) (all WatchOptions) {
	for _, o := range options {
		all.Predicates = append(all.Predicates, o.Predicates...)
		all.OnlyMetadata = all.OnlyMetadata || o.OnlyMetadata
		all.EveryOwner = all.EveryOwner || o.EveryOwner
		all.Namespaces = append(all.Namespaces, o.Namespaces...)
		if o.LabelSelector != "" {
			all.LabelSelector = o.LabelSelector
		}
		if o.FieldSelector != "" {
			all.FieldSelector = o.FieldSelector
		}
		if o.Transform != nil {
			all.Transform, all.TransformName = o.Transform, o.TransformName
		}
	}
	return all
}

// Restrict says what is cached: as given, where the options do not say.
func (o WatchOptions) Restrict(given informer.InformerOptions) informer.InformerOptions {
	if o.Namespaces != nil {
		given.Namespaces = o.Namespaces
	}
	if o.LabelSelector != "" {
		given.LabelSelector = o.LabelSelector
	}
	if o.FieldSelector != "" {
		given.FieldSelector = o.FieldSelector
	}
	if o.Transform != nil {
		given.Transform, given.TransformName = o.Transform, o.TransformName
	}
	return given
}
