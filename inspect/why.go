package inspect

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	fieldselector "k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/trace"
	"github.com/flyball-dev/flyball/internal/versions"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
)

// Why says in words what holds up an object on its way from the server to a reconcile, or what happened last. It reads
// the object from the server.
func (i *Inspector) Why(ctx context.Context, m *manager.Manager, object Ref) []string {
	w := &why{inspector: i, manager: m, object: object}
	w.server(ctx)
	if w.caches(); w.stop {
		return w.lines
	}
	w.handlers()
	w.queues()
	if len(w.lines) == 0 {
		w.say("no controller of this process has reconciled it")
	}
	return w.lines
}

// why is one answer of Why. The methods follow the object through the pipeline; each says what it finds.
type why struct {
	inspector *Inspector
	manager   *manager.Manager
	object    Ref
	lines     []string
	// stop: the object gets no further.
	stop bool

	// live is the object on the server; nil if it is not there or was not read.
	live    *unstructured.Unstructured
	missing bool // from the server
	// queued reports whether a key of the object is in a queue.
	queued bool
}

func (w *why) say(format string, values ...any) {
	w.lines = append(w.lines, fmt.Sprintf(format, values...))
}

// ofResource returns the caches of the object's resource.
func (w *why) ofResource() []informer.Cache {
	return slices.DeleteFunc(slices.Clone(w.manager.Informers().Caches()), func(c informer.Cache) bool {
		return c.Resource() != w.object.Resource
	})
}

// server reads the object.
func (w *why) server(ctx context.Context) {
	caches := w.ofResource()
	if len(caches) == 0 {
		return
	}
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(caches[0].Selection().Kind)
	key := client.ObjectKey{Namespace: w.object.Namespace, Name: w.object.Name}
	switch err := w.manager.GetAPIReader().Get(ctx, key, live); {
	case err == nil:
		w.live = live
	case apierrors.IsNotFound(err):
		w.missing = true
		w.say("the server has no such object")
	default:
		w.say("the server does not show the object: %v", err)
	}
}

// caches follows the object from the server to a cache.
func (w *why) caches() {
	caches := w.ofResource()
	if len(caches) == 0 {
		w.say("no controller of this process watches %s", w.object.Resource)
		w.stop = true
		return
	}
	for _, h := range w.manager.Informers().Health() {
		if h.Resource == w.object.Resource {
			for _, problem := range problems(h) {
				w.say("cache of %s: %s", h.Resource, problem)
			}
		}
	}
	found := false
	var excluded []string
	for _, c := range caches {
		cached, ok := c.Get(w.object.Namespace, w.object.Name)
		switch {
		case ok:
			found = true
			w.behind(cached.GetResourceVersion())
		case w.live != nil && c.HasSynced():
			if only := w.excludes(c); only != "" {
				excluded = append(excluded, fmt.Sprintf("the cache of %s holds %s", c.Resource(), only))
				continue
			}
			w.say("the cache of %s is at version %s and does not have the object", c.Resource(),
				c.NamespaceResourceVersion(w.object.Namespace))
		}
	}
	if !found { // Otherwise they are caches of something else, such as the Secret of a webhook's certificate.
		w.lines = append(w.lines, excluded...)
	}
	w.stop = !found && !w.missing
}

// behind says whether a cache has an older state than the server.
func (w *why) behind(version string) {
	if w.live == nil && !w.missing {
		return
	}
	if w.missing {
		w.say("the cache still has version %s", version)
		return
	}
	if live := w.live.GetResourceVersion(); live != version && !versions.Reached(version, live) {
		w.say("the cache has version %s, the server has %s", version, live)
	}
}

// excludes returns what a cache is restricted to if that leaves the object out, and "" otherwise.
func (w *why) excludes(c informer.Cache) string {
	s := c.Selection()
	byLabels, err := labels.Parse(s.LabelSelector)
	byFields, invalid := fieldselector.ParseSelector(s.FieldSelector)
	switch {
	case len(s.Namespaces) > 0 && w.object.Namespace != "" && !slices.Contains(s.Namespaces, w.object.Namespace):
		return fmt.Sprintf("the namespaces %s only", strings.Join(s.Namespaces, ","))
	case err == nil && !byLabels.Matches(labels.Set(w.live.GetLabels())):
		return fmt.Sprintf("objects with the labels %q only; this one has %q", s.LabelSelector,
			labels.Set(w.live.GetLabels()))
	case invalid == nil && !byFields.Empty():
		return fmt.Sprintf("objects with the fields %q only", s.FieldSelector)
	case s.ShardSelector != "":
		return "one shard only"
	}
	return ""
}

// handlers follows it from the cache to keys.
func (w *why) handlers() {
	steps, _ := w.inspector.recorder.Steps(w.object.subject())
	var changed *trace.Step // the last one
	dropped := map[string]*trace.Step{}
	for n := range steps {
		switch s := &steps[n]; s.Kind {
		case trace.Changed:
			changed = s
		case trace.Handled:
			dropped[s.Other.Controller] = nil
			if len(s.Keys) == 0 {
				dropped[s.Other.Controller] = s
			}
		}
	}
	for _, controller := range slices.Sorted(maps.Keys(dropped)) {
		if s := dropped[controller]; s != nil {
			w.say("controller %s made no key of the last event (%s, version %s): a predicate dropped it, or its "+
				"handler maps it to nothing", controller, s.Event, s.Version)
		}
	}
	stats, handled := w.manager.Informers().Stats(), false
	for _, name := range slices.Sorted(maps.Keys(stats)) {
		if resource, _, _ := strings.Cut(name, " "); resource != w.object.Resource {
			continue
		}
		for _, h := range stats[name].Handlers {
			handled = true
			if h.Running > handlerPatience {
				w.say("handler %s of %s has been busy for %s, and %d events wait for it", h.Name, name,
					short(h.Running), h.Pending)
			}
			if h.Panics > 0 {
				w.say("handler %s of %s %s", h.Name, name, panicked(h.Panics))
			}
		}
	}
	if !handled {
		w.say("no controller of this process watches %s; the cache of it serves reads only", w.object.Resource)
	} else if changed == nil && len(dropped) == 0 {
		w.say("nothing has happened to it that is still recorded")
	}
}

// queues follows its keys to their reconciles.
func (w *why) queues() {
	keys := w.keys()
	for _, loop := range w.manager.Controllers() {
		if concerns(keys, loop.Name()) {
			w.started(loop)
		}
		w.queue(loop, keys)
	}
	if w.queued {
		return
	}
	var last *trace.Step
	var of trace.Subject
	for _, key := range keys {
		steps, _ := w.inspector.recorder.Steps(key)
		for n := range steps {
			if s := &steps[n]; s.Kind == trace.Ran && (last == nil || s.Number > last.Number) {
				last, of = s, key
			}
		}
	}
	if last != nil && last.Outcome != "" {
		w.say("controller %s reconciled %s %s ago: %s", of.Controller, of.Key(),
			time.Since(last.Time.Add(last.Took)).Round(time.Second), runText(last))
	}
}

// started says why a controller does not reconcile at all.
func (w *why) started(loop reconcile.Loop) {
	if held := loop.Stats().Held; held > 0 {
		w.say("controller %s holds its %d keys back until this process leads", loop.Name(), held)
		return
	}
	if health, ok := loop.(interface{ Health() error }); ok && !loop.Work().Started {
		if err := health.Health(); err != nil {
			w.say("controller %s does not reconcile yet: %v", loop.Name(), err)
		}
	}
}

// keys are those that handlers have made of the object, and its own name.
func (w *why) keys() (keys []trace.Subject) {
	add := func(k trace.Subject) {
		if !slices.Contains(keys, k) {
			keys = append(keys, k)
		}
	}
	steps, _ := w.inspector.recorder.Steps(w.object.subject())
	for n := range steps {
		if s := &steps[n]; s.Kind == trace.Handled {
			for _, k := range s.Keys {
				add(trace.Subject{Controller: s.Other.Controller, Namespace: k.Namespace, Name: k.Name})
			}
		}
	}
	return keys
}

func concerns(keys []trace.Subject, controller string) bool {
	return len(keys) == 0 || slices.ContainsFunc(keys, func(k trace.Subject) bool { return k.Controller == controller })
}

// mostKeysSearched bounds how much of a queue is searched for a key.
const mostKeysSearched = 10_000

// queue says where in a controller's queue the keys are.
func (w *why) queue(loop reconcile.Loop, keys []trace.Subject) {
	mine := func(text string) bool {
		return slices.ContainsFunc(keys, func(k trace.Subject) bool {
			return k.Controller == loop.Name() && k.Key() == text
		})
	}
	view := w.inspector.queue(loop, mostKeysSearched)
	work := loop.Work()
	for _, k := range view.Processing {
		if mine(k.Key) {
			w.queued = true
			w.say("controller %s has been reconciling %s for %s", loop.Name(), k.Key, short(k.Time))
			for _, cause := range causeTexts(k.Again) {
				w.say("controller %s will reconcile %s once more %s", loop.Name(), k.Key, cause)
			}
		}
	}
	for n, k := range view.Ready {
		if !mine(k.Key) {
			continue
		}
		w.queued = true
		w.say("%s is ready in the queue of controller %s, behind %d others", k.Key, loop.Name(), n)
		for _, busy := range view.Processing {
			w.say("a worker has been busy with %s for %s", busy.Key, short(busy.Time))
		}
		if !work.Started {
			w.say("the workers of controller %s do not run", loop.Name())
		}
	}
	for _, d := range work.Delayed {
		if mine(d.Key) {
			w.queued = true
			w.say("controller %s will reconcile %s in %s (%s, attempt %d)", loop.Name(), d.Key, short(d.In), d.Why,
				d.Attempt+1)
		}
	}
	for _, f := range work.Failing {
		if !mine(f.Key) {
			continue
		}
		verb := "failed"
		if f.GivenUp {
			verb = "gave up"
		}
		w.say("controller %s %s on %s after %d attempts: %v", loop.Name(), verb, f.Key, f.Attempts, f.Err)
	}
}
