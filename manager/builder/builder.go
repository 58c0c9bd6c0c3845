package builder

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/buildcalls"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/reconcile/event"
	"github.com/flyball-dev/flyball/reconcile/handler"
	"github.com/flyball-dev/flyball/reconcile/predicate"
)

// Handler turns the events of objects into requests.
type Handler = event.Handler[informer.Object, reconcile.Request]

// Predicate decides which events a controller receives.
type Predicate = event.Predicate[informer.Object]

// HandlerFuncs is a [Handler], and PredicateFunc a [Predicate]. Packages handler and predicate make them.
type (
	HandlerFuncs  = handler.EventHandler[informer.Object, reconcile.Request]
	PredicateFunc = predicate.Predicate[informer.Object]
)

// Builder collects the parts of a controller. Its methods return the Builder, so that calls can be chained.
//
// Concurrency: a Builder must not be used by several goroutines at once.
type Builder struct {
	manager *manager.Manager
	calls   buildcalls.Calls
	inputs  []input // that of For first
	sources []reconcile.Source[reconcile.Request]
	filters []PredicateFunc

	options     reconcile.Options[reconcile.Request]
	syncTimeout time.Duration
	leaderless  bool
}

// input is one call of For, Owns or Watches.
type input struct {
	call    string // "For", for messages
	object  informer.Object
	kind    schema.GroupVersionKind
	options WatchOptions
	// handler is nil for Owns, whose handler depends on the kind given to For.
	handler *HandlerFuncs
}

// ControllerManagedBy returns a Builder of a controller that the manager will run.
func ControllerManagedBy(m *manager.Manager) *Builder {
	b := &Builder{manager: m, calls: buildcalls.Begin()}
	if m == nil {
		b.calls.Misuse("ControllerManagedBy: the manager is nil; make one with manager.New")
	}
	return b
}

// For sets the kind of objects that the controller reconciles: each of their events becomes a request that names the
// object. It must be called exactly once, unless the controller has a name and uses only Watches.
func (b *Builder) For(object informer.Object, o ...WatchOptions) *Builder {
	h := handler.EnqueueObject[informer.Object]()
	return b.input("For", object, &h, o)
}

// Owns watches objects that the controller creates. Each of their events becomes a request that names the object's
// controller owner, if that owner is of the kind given to For. See [MatchEveryOwner].
func (b *Builder) Owns(object informer.Object, o ...WatchOptions) *Builder {
	return b.input("Owns", object, nil, o)
}

// Watches watches other objects. The handler h turns their events into requests; handler.EnqueueMapped makes a
// handler from a function.
func (b *Builder) Watches(object informer.Object, h Handler, o ...WatchOptions) *Builder {
	funcs := handler.Of(h)
	return b.input("Watches", object, &funcs, o)
}

// WatchesMetadata is Watches for the metadata of the objects alone, which needs a much smaller cache.
func (b *Builder) WatchesMetadata(object informer.Object, h Handler, o ...WatchOptions) *Builder {
	return b.Watches(object, h, append(o, OnlyMetadata)...)
}

// WatchesRawSource adds any other source of requests. WithEventFilter does not apply to it.
func (b *Builder) WatchesRawSource(s reconcile.Source[reconcile.Request]) *Builder {
	if b.calls.Given("WatchesRawSource", "source", s) {
		b.sources = append(b.sources, s)
	}
	return b
}

// WithEventFilter restricts the events of For, Owns and Watches to those that p accepts. If it is called several times,
// all predicates must accept an event.
func (b *Builder) WithEventFilter(p Predicate) *Builder {
	if b.calls.Given("WithEventFilter", "predicate", p) {
		b.filters = append(b.filters, predicate.Of(p))
	}
	return b
}

// WithOptions sets the options of the reconcile loop: reconcile.Options, or controller.Options of manager/ctrl. If
// Metrics is nil, the manager's metrics are used.
func (b *Builder) WithOptions(o interface {
	LoopOptions() reconcile.Options[reconcile.Request]
},
) *Builder {
	b.options = o.LoopOptions()
	b.calls.Options(b.options.Workers, 1)
	return b
}

// Named sets the controller's name in logs, metrics and health. The default is the kind given to For, in lower case.
func (b *Builder) Named(name string) *Builder {
	b.calls.Named(name)
	return b
}

// NeedLeaderElection sets whether the controller runs only while its process leads. The default is true.
func (b *Builder) NeedLeaderElection(needs bool) *Builder {
	b.leaderless = !needs
	return b
}

// CacheSyncTimeout makes the controller fail, and with it the manager, if a cache is not filled within d after the
// start. Zero, the default, means that the controller waits; the manager's readiness shows for which cache.
func (b *Builder) CacheSyncTimeout(d time.Duration) *Builder {
	if d < 0 {
		b.calls.Misuse("CacheSyncTimeout %v is negative; 0 means to wait", d)
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
	name, err := b.calls.End(r, len(b.sources))
	if err != nil {
		return nil, err
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

// input checks a call of For, Owns or Watches, and records it if it is correct.
func (b *Builder) input(call string, object informer.Object, h *HandlerFuncs, o []WatchOptions) *Builder {
	in := input{call: call, object: object, handler: h, options: Merge(o...)}
	noted := buildcalls.Input{
		Call: call, Object: object, EveryOwner: in.options.EveryOwner,
		EmptyHandler: h != nil && h.OnAdd == nil && h.OnUpdate == nil && h.OnDelete == nil,
		NilPredicate: buildcalls.HasNil(in.options.Predicates),
	}
	if b.manager != nil {
		noted.KindOf = b.kindOf
	}
	var ok bool
	if in.kind, ok = b.calls.Input(noted); !ok {
		return b
	}
	if call == "For" {
		b.inputs = slices.Insert(b.inputs, 0, in)
	} else {
		b.inputs = append(b.inputs, in)
	}
	return b
}

// kindOf returns the kind of an example object, which the scheme finds by its Go type.
func (b *Builder) kindOf(object runtime.Object) (schema.GroupVersionKind, error) {
	told := object.GetObjectKind().GroupVersionKind()
	kinds, _, err := b.manager.GetScheme().ObjectKinds(object)
	switch {
	case err != nil:
		return told,
			fmt.Errorf(
				"the manager's scheme does not know the type: call AddToScheme of its package, and give the scheme to "+
					"the manager in Options.Scheme (%w)", err,
			)
	case slices.Contains(kinds, told):
		return told, nil
	case len(kinds) > 1:
		return told,
			fmt.Errorf("the type is registered for %d kinds (%v): set the object's TypeMeta to one of them", len(kinds),
				kinds)
	}
	return kinds[0], nil
}
