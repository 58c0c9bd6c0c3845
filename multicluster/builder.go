package multicluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/misuse"
	"github.com/flyball-dev/flyball/manager/builder"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/reconcile/handler"
)

type kind = schema.GroupVersionKind

// Handler turns the events of objects into requests of any clusters. [ClusterFromContext] tells where the event
// happened.
type Handler = handler.EventHandler[informer.Object, Request]

// Builder collects what a controller is made of. Its methods return it, so that they can be chained. What is wrong is
// noted, and told by Complete.
//
// Concurrency: one goroutine at a time.
type Builder struct {
	parts      parts
	named      bool
	optionsSet bool
	elected    *bool
	inputs     []*input
	predicates []builder.Predicate
	wrong      []error
}

// ControllerManagedBy begins a controller that works on the clusters of a fleet.
func ControllerManagedBy(m *Manager) *Builder {
	b := &Builder{parts: parts{fleet: m}}
	if m == nil {
		b.misuse("ControllerManagedBy: the fleet is nil; make one with multicluster.New")
	} else {
		b.parts.local = m.options.EngageLocal
	}
	return b
}

func (b *Builder) misuse(format string, args ...any) {
	b.wrong = append(b.wrong, fmt.Errorf(format, args...))
}

// For says which objects the controller reconciles: each of their events, in each cluster, is a request that names
// cluster and object. It must be called once, unless the controller has only Watches and a name.
func (b *Builder) For(object informer.Object, o ...builder.WatchOptions) *Builder {
	if b.parts.object != nil {
		b.misuse(
			"For was called twice: a controller reconciles one kind; let it Watch the other, or build a second " +
				"controller",
		)
		return b
	}
	handler := handler.EnqueueObject[informer.Object]()
	b.parts.object = b.input(&input{call: "For", object: object, own: &handler}, o)
	return b
}

// Owns watches objects that are made by the controller: each of their events is a request that names the object of
// For, in the same cluster, that owns it as its controller. See builder.MatchEveryOwner.
func (b *Builder) Owns(object informer.Object, o ...builder.WatchOptions) *Builder {
	b.input(&input{call: "Owns", object: object, owns: true}, o)
	return b
}

// Watches watches other objects in each cluster, whose events h turns into requests of the same cluster.
func (b *Builder) Watches(object informer.Object, h builder.Handler, o ...builder.WatchOptions) *Builder {
	if h.OnAdd == nil && h.OnUpdate == nil && h.OnDelete == nil {
		b.misuse("Watches(%T): the handler has no function; make one with handler.EnqueueMapped", object)
		return b
	}
	b.input(&input{call: "Watches", object: object, own: &h}, o)
	return b
}

// WatchesAcross watches other objects in each cluster, whose events h turns into requests of any clusters.
func (b *Builder) WatchesAcross(object informer.Object, h Handler, o ...builder.WatchOptions) *Builder {
	return b.across("WatchesAcross", false, object, h, o)
}

// WatchesLocal watches objects of the local cluster, whether or not the controller engages that, and h turns their
// events into requests of any clusters: what is declared here, and to be done elsewhere.
func (b *Builder) WatchesLocal(object informer.Object, h Handler, o ...builder.WatchOptions) *Builder {
	return b.across("WatchesLocal", true, object, h, o)
}

func (b *Builder) across(call string, onlyLocal bool, object informer.Object, h Handler,
	o []builder.WatchOptions,
) *Builder {
	if h.OnAdd == nil && h.OnUpdate == nil && h.OnDelete == nil {
		b.misuse("%s(%T): the handler has no function; make one with handler.EnqueueMapped", call, object)
		return b
	}
	b.input(&input{call: call, object: object, across: &h, onlyLocal: onlyLocal}, o)
	return b
}

// ClusterHandler turns the coming and going of clusters into requests, of these or of others: what is declared in the
// local cluster has to be done anew in a cluster that joins, and reported anew when one has left. A nil function
// ignores it.
//
// Concurrency: the functions should only compute requests; what takes long belongs into the reconciler.
type ClusterHandler struct {
	// OnLive hears of a cluster that the controller means, when its caches there are filled, and again when its
	// labels change. It is called again, with backoff, while it fails.
	OnLive func(ctx context.Context, c *Cluster) ([]Request, error)
	// OnGone hears of a cluster that has departed, or is not meant any more. It is not called when the process stops.
	OnGone func(ctx context.Context, c ClusterInfo) []Request
}

// WatchesClusters watches which clusters there are.
func (b *Builder) WatchesClusters(h ClusterHandler) *Builder {
	if h.OnLive == nil && h.OnGone == nil {
		b.misuse("WatchesClusters: the handler has no function")
		return b
	}
	b.parts.clusters = append(b.parts.clusters, h)
	return b
}

// WithEventFilter lets the controller hear only of the events that p lets pass. Called again, both must.
func (b *Builder) WithEventFilter(p builder.Predicate) *Builder {
	if p == nil {
		b.misuse("WithEventFilter: the predicate is nil")
		return b
	}
	b.predicates = append(b.predicates, p)
	return b
}

// WithClusterFilter lets the controller work only on the clusters that f means, by what they are called and labelled
// at the time; see [MatchLabels]. Called again, both must. The local cluster is not asked about.
func (b *Builder) WithClusterFilter(f ClusterFilter) *Builder {
	if f == nil {
		b.misuse("WithClusterFilter: the filter is nil")
		return b
	}
	b.parts.filters = append(b.parts.filters, f)
	return b
}

// EngageLocal says whether the controller watches the local cluster, too. Without it the fleet's Options.EngageLocal
// counts.
func (b *Builder) EngageLocal(engage bool) *Builder {
	b.parts.local = engage
	return b
}

// ReportGone has the reconciler called for requests that were queued when their cluster departed, instead of dropping
// them: [ClusterFromContext] then finds no cluster, and [Manager.GetCluster] returns [ErrClusterGone] for it.
func (b *Builder) ReportGone(report bool) *Builder {
	b.parts.reportGone = report
	return b
}

// WithOptions sets the options of the loop. Workers is how many reconciles run at once in all clusters together, zero
// being 8; see Options.ClusterWorkers and Options.ReleaseAfter of the fleet. Metrics, when nil, are the local
// manager's. What hangs or fails is told by the fleet's note; it does not make the process unready, so that
// FailingAfter has no use.
func (b *Builder) WithOptions(o reconcile.Options[Request]) *Builder {
	if b.optionsSet {
		b.misuse("WithOptions was called twice: the second would undo the first; put all options into one")
	}
	if o.Workers < 0 {
		b.misuse("WithOptions: %d Workers; 0 means %d", o.Workers, defaultWorkers)
	}
	if o.Order != nil {
		b.misuse("WithOptions: Order: the queue of a fleet's controller has lanes of clusters, each by priority")
	}
	b.parts.options, b.optionsSet = o, true
	return b
}

// Named names the controller in logs, metrics and health. Without it the name is the kind given to For, in lower case.
func (b *Builder) Named(name string) *Builder {
	if err := misuse.Name(name); err != nil {
		b.misuse("Named: %w; without Named it is the kind's", err)
	}
	b.parts.name, b.named = name, true
	return b
}

// NeedLeaderElection says whether the controller runs only while its process leads. Without it, it does, unless the
// fleet has an Owner, which says cluster by cluster who works.
func (b *Builder) NeedLeaderElection(needs bool) *Builder {
	b.elected = &needs
	return b
}

// Complete builds the controller, adds it to the local manager, and shows it the clusters that are in the fleet.
//
// Errors: those of [Builder.Build]; a name that is taken in the manager.
func (b *Builder) Complete(r reconcile.Reconciler[Request]) error {
	c, err := b.Build(r)
	if err != nil {
		return err
	}
	if err := b.parts.fleet.local.Add(c); err != nil {
		c.Release()
		return fmt.Errorf("build controller %s: %w; Named gives a controller another name", c.Name(), err)
	}
	return nil
}

// Build makes the controller without adding it to the local manager. It may be called again, for another controller.
//
// Errors: everything that was wrong in the calls before, joined.
func (b *Builder) Build(r reconcile.Reconciler[Request]) (*Controller, error) {
	p := b.parts
	if !b.named && p.object != nil {
		p.name = strings.ToLower(p.object.kind.Kind)
	}
	if wrong := append(b.wrong[:len(b.wrong):len(b.wrong)], b.lacking(r)...); len(wrong) > 0 {
		if p.name == "" {
			p.name = "without a name"
		}
		return nil, fmt.Errorf("build controller %s: %w", p.name, errors.Join(wrong...))
	}
	p.reconciler = r
	for _, in := range b.inputs {
		finished := *in
		finished.filters = append(b.predicates[:len(b.predicates):len(b.predicates)], in.options.Predicates...)
		if in.owns {
			finished.owner = p.object.kind
		}
		p.inputs = append(p.inputs, &finished)
	}
	p.leaderless = p.fleet.options.Owner != nil
	if b.elected != nil {
		p.leaderless = !*b.elected
	}
	if p.options.Metrics == nil {
		p.options.Metrics = p.fleet.local.QueueMetrics()
	}
	c := newController(&p)
	p.fleet.enlist(c)
	return c, nil
}

// lacking says what should have been called and was not.
func (b *Builder) lacking(r reconcile.Reconciler[Request]) (wrong []error) {
	if b.parts.fleet == nil && len(b.wrong) == 0 {
		wrong = append(wrong, errors.New("there is no fleet: begin with ControllerManagedBy"))
	}
	if err := misuse.Nil("the reconciler", r); err != nil {
		wrong = append(wrong, err)
	}
	owns := false
	for _, in := range b.inputs {
		owns = owns || in.owns
	}
	switch {
	case b.parts.object != nil:
	case owns:
		wrong = append(wrong,
			errors.New("Owns without For: whose owner is meant? Call For(&Owner{}), or use Watches with a handler"))
	case len(b.inputs) == 0 && len(b.parts.clusters) == 0:
		wrong = append(wrong, errors.New("nothing would ever be reconciled: call For(&Kind{})"))
	case !b.named:
		wrong = append(wrong, errors.New("a controller without For has no name: call Named"))
	}
	return wrong
}

// input checks what was given to a call, and notes what is wrong with it.
func (b *Builder) input(in *input, o []builder.WatchOptions) *input {
	in.options = builder.Merge(o...)
	if b.parts.fleet == nil {
		return in // said already
	}
	if misuse.IsNil(in.object) {
		b.misuse("%s: the object is nil; give an empty one, like &corev1.Pod{}", in.call)
		return in
	}
	told := in.object.GetObjectKind().GroupVersionKind()
	switch in.object.(type) {
	case *unstructured.Unstructured, *metav1.PartialObjectMetadata:
		if told.Kind == "" || told.Version == "" {
			b.misuse("%s(%T): the object does not say its kind: call SetGroupVersionKind on it", in.call, in.object)
			return in
		}
	}
	var err error
	if in.kind, err = b.parts.fleet.kinds.GroupVersionKindFor(in.object); err != nil {
		b.misuse(
			"%s(%T): the fleet's scheme does not know the type: call AddToScheme of its package, and give the scheme "+
				"in Options.Scheme (%w)", in.call, in.object, err,
		)
		return in
	}
	if slices.ContainsFunc(in.options.Predicates, func(p builder.Predicate) bool { return p == nil }) {
		b.misuse("%s(%T): a predicate is nil", in.call, in.object)
		return in
	}
	if in.options.EveryOwner && !in.owns {
		b.misuse("%s(%T): MatchEveryOwner is for Owns", in.call, in.object)
		return in
	}
	b.inputs = append(b.inputs, in)
	return in
}
