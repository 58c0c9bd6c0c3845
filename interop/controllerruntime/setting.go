package controllerruntime

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/recorder"

	"github.com/flyball-dev/flyball/informer"
)

// setting is what is cached of a kind in namespaces with the same options.
type setting struct {
	// namespaces is nil for all namespaces, and for cluster-scoped kinds.
	namespaces []string
	// narrowed means that a field selector has excluded namespaces: the others are empty, not unknown.
	narrowed bool
	config   cache.Config
	// transform names the option that config.Transform comes from, or is "" if it is nil.
	transform string
}

// settings are cache.Options, to be looked up by kind.
type settings struct {
	o      cache.Options
	byKind map[schema.GroupVersionKind]cache.ByObject
}

func newSettings(o cache.Options) (*settings, error) {
	s := &settings{o: o, byKind: map[schema.GroupVersionKind]cache.ByObject{}}
	for obj, by := range o.ByObject {
		gvk, err := apiutil.GVKForObject(obj, o.Scheme)
		if err != nil {
			return nil, fmt.Errorf("cache options for %T: %w", obj, err)
		}
		namespaced, err := apiutil.IsGVKNamespaced(gvk, o.Mapper)
		if err != nil {
			return nil, fmt.Errorf("cache options for %s: %w", gvk.Kind, err)
		}
		if !namespaced && by.Namespaces != nil {
			return nil, fmt.Errorf("cache options for %s: the kind has no namespaces, but ByObject.Namespaces is set",
				gvk.Kind)
		}
		s.byKind[gvk] = by
	}
	return s, nil
}

// layer is one of the places that an option may come from.
type layer struct {
	name   string
	config cache.Config
}

// of returns what is cached of a kind. Options for a kind and a namespace take precedence over options for either.
//
// Source: controller-runtime v0.25.2 pkg/cache/cache.go, defaultOpts.
func (s *settings) of(gvk schema.GroupVersionKind, namespaced bool) []setting {
	defaults := layer{"Default", cache.Config{
		LabelSelector: s.o.DefaultLabelSelector, FieldSelector: s.o.DefaultFieldSelector,
		Transform:             s.o.DefaultTransform,
		UnsafeDisableDeepCopy: s.o.DefaultUnsafeDisableDeepCopy, SyncPeriod: s.o.SyncPeriod,
	}}
	layers := []layer{defaults}
	by, own := s.byKind[gvk]
	if own {
		layers = []layer{{"ByObject", cache.Config{
			LabelSelector: by.Label, FieldSelector: by.Field, Transform: by.Transform,
			UnsafeDisableDeepCopy: by.UnsafeDisableDeepCopy, SyncPeriod: by.SyncPeriod,
		}}, defaults}
	}
	if !namespaced {
		return []setting{resolve(nil, layers)}
	}
	of, inherited := by.Namespaces, false
	if of == nil {
		of, inherited = s.o.DefaultNamespaces, true
	}
	if len(of) == 0 {
		return []setting{resolve(nil, layers)}
	}
	var all []setting
	for _, namespace := range slices.Sorted(maps.Keys(of)) {
		specific := []layer{{"Namespaces/" + namespace, of[namespace]}}
		if inherited {
			specific[0].name = "DefaultNamespaces/" + namespace
		}
		specific = append(specific, layers[:len(layers)-1]...)
		if !inherited {
			specific = append(specific, layer{"DefaultNamespaces/" + namespace, s.o.DefaultNamespaces[namespace]})
		}
		one := resolve([]string{namespace}, append(specific, defaults))
		if namespace == cache.AllNamespaces {
			one.namespaces = nil
			one.config.FieldSelector = otherNamespaces(of, one.config.FieldSelector)
		}
		all = append(all, one)
	}
	return merge(all)
}

// resolve takes each option from the first layer that sets it.
func resolve(namespaces []string, layers []layer) setting {
	s := setting{namespaces: namespaces}
	for _, l := range layers {
		if s.config.Transform == nil && l.config.Transform != nil {
			s.config.Transform, s.transform = l.config.Transform, l.name
		}
		if s.config.LabelSelector == nil {
			s.config.LabelSelector = l.config.LabelSelector
		}
		if s.config.FieldSelector == nil {
			s.config.FieldSelector = l.config.FieldSelector
		}
		s.config.UnsafeDisableDeepCopy = cmp.Or(s.config.UnsafeDisableDeepCopy, l.config.UnsafeDisableDeepCopy)
		s.config.SyncPeriod = cmp.Or(s.config.SyncPeriod, l.config.SyncPeriod)
	}
	if s.config.FieldSelector != nil && len(namespaces) == 0 {
		if only, exact := s.config.FieldSelector.RequiresExactMatch("metadata.namespace"); exact {
			s.namespaces, s.narrowed = []string{only}, true
		}
	}
	return s
}

// otherNamespaces selects the namespaces that no other setting names.
func otherNamespaces(of map[string]cache.Config, also fields.Selector) fields.Selector {
	var all []fields.Selector
	for _, namespace := range slices.Sorted(maps.Keys(of)) {
		if namespace != cache.AllNamespaces {
			all = append(all, fields.OneTermNotEqualSelector("metadata.namespace", namespace))
		}
	}
	if also != nil {
		all = append(all, also)
	}
	return fields.AndSelectors(all...)
}

// merge merges settings that differ only in their namespaces into one: one informer, whose handlers get all objects.
func merge(all []setting) []setting {
	merged := all[:1:1]
	for _, s := range all[1:] {
		i := slices.IndexFunc(merged,
			func(m setting) bool { return m.namespaces != nil && s.namespaces != nil && m.alike(s) })
		if i < 0 {
			merged = append(merged, s)
			continue
		}
		merged[i].namespaces = append(merged[i].namespaces, s.namespaces...)
	}
	return merged
}

func (s setting) alike(other setting) bool {
	return s.selected() == other.selected() && s.resync() == other.resync() && s.shares() == other.shares()
}

// selected is the part of a setting that can be compared.
type selected struct{ labels, fields, transform string }

func (s setting) selected() selected {
	o := selected{transform: s.transform}
	if s.config.LabelSelector != nil {
		o.labels = s.config.LabelSelector.String()
	}
	if s.config.FieldSelector != nil {
		o.fields = s.config.FieldSelector.String()
	}
	return o
}

// defaultSyncPeriod is controller-runtime's.
const defaultSyncPeriod = 10 * time.Hour

func (s setting) resync() time.Duration {
	if s.config.SyncPeriod == nil {
		return defaultSyncPeriod
	}
	return *s.config.SyncPeriod
}

// shares reports whether reads return objects without a copy.
func (s setting) shares() bool {
	return s.config.UnsafeDisableDeepCopy != nil && *s.config.UnsafeDisableDeepCopy
}

// informer returns the setting as options of a Flyball informer.
func (s setting) informer(gvk schema.GroupVersionKind, namespaced bool) informer.InformerOptions {
	o := informer.InformerOptions{Kind: gvk, Namespaces: s.namespaces, ClusterScoped: !namespaced}
	sel := s.selected()
	o.LabelSelector, o.FieldSelector = sel.labels, sel.fields
	if s.transform != "" {
		o.TransformName, o.Transform = s.transform, transform(s.config.Transform)
	}
	return o
}

func transform(f toolscache.TransformFunc) func(informer.Object) (informer.Object, error) {
	return func(obj informer.Object) (informer.Object, error) {
		kept, err := f(obj)
		if err != nil {
			return nil, err
		}
		changed, ok := kept.(informer.Object)
		if !ok {
			return nil, fmt.Errorf("the transform made a %T, which has no metadata", kept)
		}
		return changed, nil
	}
}

// GetEventRecorderFor returns a recorder for a component. It records through Options.EventBroadcaster, or else through
// Flyball's sender.
func (m *Manager) GetEventRecorderFor(name string) record.EventRecorder {
	//lint:ignore SA1019 It may be set.
	b := m.o.EventBroadcaster
	if b == nil {
		return m.core.GetEventRecorderFor(name)
	}
	m.sink.Do(func() { // The caller stops it.
		events := corev1client.NewForConfigOrDie(m.core.GetConfig()).Events("") // The core has made clients of it.
		b.StartRecordingToSink(&corev1client.EventSinkImpl{Interface: events})
	})
	return b.NewRecorder(m.o.Cache.Scheme, corev1.EventSource{Component: name})
}

// GetEventRecorder returns a recorder of events with an action and a second object. It records through Flyball's
// sender.
func (m *Manager) GetEventRecorder(name string) recorder.EventRecorder {
	return m.core.GetEventRecorder(name)
}
