package builder

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/misuse"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/reconcile/handler"
	"github.com/flyball-dev/flyball/reconcile/predicate"
)

// Handler turns the events of objects into requests.
type Handler = handler.EventHandler[informer.Object, reconcile.Request]

// Predicate decides which events a controller receives.
type Predicate = predicate.Predicate[informer.Object]

// Builder collects the parts of a controller. Its methods return the Builder, so that calls can be chained.
//
// Concurrency: a Builder must not be used by several goroutines at once.
type Builder struct {
	manager *manager.Manager
	name    string
	named   bool
	object  *input // nil before For
	inputs  []input
	sources []reconcile.Source[reconcile.Request]
	filters []Predicate

	options     reconcile.Options[reconcile.Request]
	optionsSet  bool
	syncTimeout time.Duration
	leaderless  bool

	wrong []error
}

// input is one call of For, Owns or Watches.
type input struct {
	call    string // "For", for messages
	object  informer.Object
	kind    schema.GroupVersionKind
	options WatchOptions
	// handler is nil for Owns, whose handler depends on the kind given to For.
	handler *Handler
}

// ControllerManagedBy returns a Builder of a controller that the manager will run.
func ControllerManagedBy(m *manager.Manager) *Builder {
	b := &Builder{manager: m}
	if m == nil {
		b.misuse("ControllerManagedBy: the manager is nil; make one with manager.New")
	}
	return b
}

func (b *Builder) misuse(format string, args ...any) {
	b.wrong = append(b.wrong, fmt.Errorf(format, args...))
}

// For sets the kind of objects that the controller reconciles: each of their events becomes a request that names the
// object. It must be called exactly once, unless the controller has a name and uses only Watches.
func (b *Builder) For(object informer.Object, o ...WatchOptions) *Builder {
	if b.object != nil {
		b.misuse(
			"For was called twice: a controller reconciles one kind; let it Watch the other, or build a second " +
				"controller",
		)
		return b
	}
	handler := handler.EnqueueObject[informer.Object]()
	if in, ok := b.input("For", object, &handler, o); ok {
		b.object = &in
	} else {
		b.object = &input{call: "For"} // so that For does not count as missing
	}
	return b
}

// Owns watches objects that the controller creates. Each of their events becomes a request that names the object's
// controller owner, if that owner is of the kind given to For. See [MatchEveryOwner].
func (b *Builder) Owns(object informer.Object, o ...WatchOptions) *Builder {
	if in, ok := b.input("Owns", object, nil, o); ok {
		b.inputs = append(b.inputs, in)
	}
	return b
}

// Watches watches other objects. The handler h turns their events into requests; handler.EnqueueMapped makes a
// handler from a function.
func (b *Builder) Watches(object informer.Object, h Handler, o ...WatchOptions) *Builder {
	if h.OnAdd == nil && h.OnUpdate == nil && h.OnDelete == nil {
		b.misuse("Watches(%T): the handler has no function; make one with handler.EnqueueMapped", object)
		return b
	}
	if in, ok := b.input("Watches", object, &h, o); ok {
		b.inputs = append(b.inputs, in)
	}
	return b
}

// WatchesMetadata is Watches for the metadata of the objects alone, which needs a much smaller cache.
func (b *Builder) WatchesMetadata(object informer.Object, h Handler, o ...WatchOptions) *Builder {
	return b.Watches(object, h, append(o, OnlyMetadata)...)
}

// WatchesRawSource adds any other source of requests. WithEventFilter does not apply to it.
func (b *Builder) WatchesRawSource(s reconcile.Source[reconcile.Request]) *Builder {
	if misuse.IsNil(s) {
		b.misuse("WatchesRawSource: the source is nil")
		return b
	}
	b.sources = append(b.sources, s)
	return b
}

// WithEventFilter restricts the events of For, Owns and Watches to those that p accepts. If it is called several times,
// all predicates must accept an event.
func (b *Builder) WithEventFilter(p Predicate) *Builder {
	if p == nil {
		b.misuse("WithEventFilter: the predicate is nil")
		return b
	}
	b.filters = append(b.filters, p)
	return b
}

// WithOptions sets the options of the reconcile loop. If Metrics is nil, the manager's metrics are used.
func (b *Builder) WithOptions(o reconcile.Options[reconcile.Request]) *Builder {
	if b.optionsSet {
		b.misuse("WithOptions was called twice: the second would undo the first; put all options into one")
	}
	if o.Workers < 0 {
		b.misuse("WithOptions: %d Workers; 0 means 1", o.Workers)
	}
	b.options, b.optionsSet = o, true
	return b
}

// Named sets the controller's name in logs, metrics and health. The default is the kind given to For, in lower case.
func (b *Builder) Named(name string) *Builder {
	if err := misuse.Name(name); err != nil {
		b.misuse("Named: %w; without Named it is the kind's", err)
	}
	b.name, b.named = name, true
	return b
}

// NeedLeaderElection sets whether the controller runs only while its process leads. The default is true.
func (b *Builder) NeedLeaderElection(needs bool) *Builder {
	b.leaderless = !needs
	return b
}

// CacheSyncTimeout makes the controller fail, and with it the manager, if a cache is not filled within d after the
// start. Zero, the default, means that the controller waits, and the manager's readiness says for what.
func (b *Builder) CacheSyncTimeout(d time.Duration) *Builder {
	if d < 0 {
		b.misuse("CacheSyncTimeout %v is negative; 0 means to wait", d)
	}
	b.syncTimeout = d
	return b
}

// Complete builds the controller and adds it to the manager.
//
// Errors: those of [Builder.Build]; the manager has a runnable of that name.
func (b *Builder) Complete(r reconcile.Reconciler[reconcile.Request]) error {
	c, err := b.Build(r)
	if err != nil {
		return err
	}
	if err := b.manager.Add(c); err != nil {
		c.Release()
		return fmt.Errorf("build controller %s: %w; Named gives a controller another name", c.Name(), err)
	}
	return nil
}

// Build builds the controller without adding it to the manager. It may be called again to build another controller.
//
// Errors: all mistakes in the preceding calls, joined.
func (b *Builder) Build(r reconcile.Reconciler[reconcile.Request]) (*Controller, error) {
	name := b.name
	if !b.named && b.object != nil {
		name = strings.ToLower(b.object.kind.Kind)
	}
	if wrong := append(b.wrong[:len(b.wrong):len(b.wrong)], b.lacking(r)...); len(wrong) > 0 {
		if name == "" {
			name = "without a name"
		}
		return nil, fmt.Errorf("build controller %s: %w", name, errors.Join(wrong...))
	}
	options := b.options
	if options.Metrics == nil {
		options.Metrics = b.manager.QueueMetrics()
	}
	parts := &parts{name: name, reconciler: r, options: options, leaderless: b.leaderless}
	if err := b.attach(parts); err != nil {
		parts.release()
		return nil, fmt.Errorf("build controller %s: %w", name, err)
	}
	return parts.controller()
}

// lacking returns an error for each call that is missing.
func (b *Builder) lacking(r reconcile.Reconciler[reconcile.Request]) (wrong []error) {
	if b.manager == nil && len(b.wrong) == 0 {
		wrong = append(wrong, errors.New("there is no manager: begin with ControllerManagedBy"))
	}
	if err := misuse.Nil("the reconciler", r); err != nil {
		wrong = append(wrong, err)
	}
	owns := false
	for _, in := range b.inputs {
		owns = owns || in.handler == nil
	}
	switch {
	case b.object != nil:
	case owns:
		wrong = append(wrong,
			errors.New("Owns without For: whose owner is meant? Call For(&Owner{}), or use Watches with a handler"))
	case len(b.inputs) == 0 && len(b.sources) == 0:
		wrong = append(wrong, errors.New("nothing would ever be reconciled: call For(&Kind{})"))
	case !b.named:
		wrong = append(wrong, errors.New("a controller without For has no name: call Named"))
	}
	return wrong
}

// input checks the arguments of a call and records what is wrong with them.
func (b *Builder) input(call string, object informer.Object, h *Handler, o []WatchOptions) (input, bool) {
	in := input{call: call, object: object, handler: h, options: Merge(o...)}
	if b.manager == nil {
		return in, false // already recorded
	}
	if misuse.IsNil(object) {
		b.misuse("%s: the object is nil; give an empty one, like &corev1.Pod{}", call)
		return in, false
	}
	var err error
	if in.kind, err = b.kindOf(object); err != nil {
		b.misuse("%s(%T): %w", call, object, err)
		return in, false
	}
	if slices.ContainsFunc(in.options.Predicates, func(p Predicate) bool { return p == nil }) {
		b.misuse("%s(%T): a predicate is nil", call, object)
		return in, false
	}
	if in.options.EveryOwner && call != "Owns" {
		b.misuse("%s(%T): MatchEveryOwner is for Owns", call, object)
		return in, false
	}
	return in, true
}

// kindOf returns the kind of an example object.
func (b *Builder) kindOf(object informer.Object) (schema.GroupVersionKind, error) {
	told := object.GetObjectKind().GroupVersionKind()
	switch object.(type) {
	case *unstructured.Unstructured, *metav1.PartialObjectMetadata:
		if told.Kind == "" || told.Version == "" {
			return told, errors.New("the object does not say its kind: call SetGroupVersionKind on it")
		}
		return told, nil
	}
	kinds, _, err := b.manager.GetScheme().ObjectKinds(object)
	if err != nil {
		return told,
			fmt.Errorf(
				"the manager's scheme does not know the type: call AddToScheme of its package, and give the scheme to "+
					"the manager in Options.Informers.Scheme (%w)", err,
			)
	}
	for _, kind := range kinds {
		if kind == told {
			return kind, nil
		}
	}
	if len(kinds) > 1 {
		return told,
			fmt.Errorf("the type stands for %d kinds (%v): set the object's TypeMeta to one of them", len(kinds), kinds)
	}
	return kinds[0], nil
}
