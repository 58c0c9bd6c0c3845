package inspect

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/pipeview"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/workqueue"
)

// handlerPatience is how long the calls of a handler may last before it counts as a problem.
const handlerPatience = 5 * time.Second

// view returns what m does, with at most limit keys of each kind.
func (i *Inspector) view(m *manager.Manager, limit int) pipeview.Pipeline {
	recorded := i.recorder.Stats()
	p := pipeview.Pipeline{
		Time: time.Now(), Steps: recorded.Steps, Subjects: recorded.Subjects, Forgotten: recorded.Evicted,
		Resources: []pipeview.Resource{}, Controllers: []pipeview.Controller{}, Flows: i.flows(),
		Tap: i.o.Tap != nil, Book: i.o.Book != nil,
	}
	if i.o.Story != nil {
		p.Story = i.o.Story()
	}
	if err := m.Ready(); err != nil {
		p.Ready = err.Error()
	}
	stats, health := m.Informers().Stats(), m.Informers().Health()
	for _, name := range slices.Sorted(maps.Keys(stats)) {
		p.Resources = append(p.Resources, resourceView(name, stats[name], health))
	}
	for _, loop := range m.Controllers() {
		p.Controllers = append(p.Controllers, i.controllerView(loop, limit))
	}
	slices.SortFunc(p.Controllers, func(a, b pipeview.Controller) int { return strings.Compare(a.Name, b.Name) })
	return p
}

// flows returns what went between resources and controllers, in the order of their names.
func (i *Inspector) flows() []pipeview.Flow {
	handled, written := i.recorder.Flows()
	all := maps.Clone(handled)
	maps.Copy(all, written)
	views := []pipeview.Flow{}
	for f := range all {
		views = append(views, pipeview.Flow{
			Resource: f.Resource, Controller: f.Controller, Handled: handled[f], Written: written[f],
		})
	}
	slices.SortFunc(views, func(a, b pipeview.Flow) int {
		return cmp.Or(strings.Compare(a.Resource, b.Resource), strings.Compare(a.Controller, b.Controller))
	})
	return views
}

func resourceView(name string, s informer.Stats, health []informer.Health) pipeview.Resource {
	v := pipeview.Resource{
		Name: name, Objects: s.Objects, Version: s.ResourceVersion, Events: s.Events, Bytes: s.Bytes, Lists: s.Lists,
		Queued: s.Queued, Unreadable: s.Unreadable, LastEvent: s.LastEvent, Handlers: []pipeview.Handler{},
	}
	for _, h := range s.Handlers {
		v.Handlers = append(v.Handlers, pipeview.Handler{
			Name: h.Name, Delivered: h.Delivered, Pending: h.Pending, Running: h.Running,
		})
		if h.Running > handlerPatience {
			v.Problems = append(v.Problems, "handler "+h.Name+" has been busy for "+short(h.Running))
		}
		if h.Panics > 0 {
			v.Problems = append(v.Problems, "handler "+h.Name+" "+panicked(h.Panics))
		}
	}
	for _, h := range health {
		if h.Resource == name {
			v.Problems = append(v.Problems, problems(h)...)
		}
	}
	return v
}

// panicked puts into words that calls of a handler, or of its predicates, have panicked. Each has lost its event.
func panicked(calls int64) string {
	return fmt.Sprintf("has panicked %d times: the log has the stacks", calls)
}

// problems puts into words what is wrong with an informer.
func problems(h informer.Health) (texts []string) {
	switch {
	case h.Err != nil && !h.Synced:
		texts = append(texts, "the first list has not succeeded: "+h.Err.Error())
	case h.Err != nil:
		texts = append(texts, "the cache may be behind: "+h.Err.Error())
	case !h.Synced:
		texts = append(texts, "the first list has not ended")
	}
	if h.Inconsistent != nil {
		texts = append(texts, h.Inconsistent.Error())
	}
	if h.UnreadableErr != nil {
		texts = append(texts, "unreadable: "+h.UnreadableErr.Error())
	}
	if h.IndexErr != nil {
		texts = append(texts, "left out of an index: "+h.IndexErr.Error())
	}
	return texts
}

func (i *Inspector) controllerView(loop reconcile.Loop, limit int) pipeview.Controller {
	s, w := loop.Stats(), loop.Work()
	v := pipeview.Controller{
		Name: loop.Name(), Workers: s.Workers, Adds: s.Adds, Reconciles: s.Syncs, Errors: s.Errors, Stale: s.Stale,
		Queued: s.Queued, InFlight: s.InFlight, Delayed: len(w.Delayed), Failing: len(w.Failing),
	}
	for _, d := range w.Delayed[:min(limit, len(w.Delayed))] {
		v.Waiting = append(v.Waiting, pipeview.Key{Key: d.Key, In: d.In, Attempt: d.Attempt, Why: d.Why})
	}
	for _, f := range w.Failing[:min(limit, len(w.Failing))] {
		why := f.Err.Error()
		if f.GivenUp {
			why = "given up: " + why
		}
		failure := pipeview.Key{Key: f.Key, Attempt: f.Attempts, Why: why, Causes: causeTexts(f.Causes)}
		v.Failures = append(v.Failures, failure)
	}
	view := i.queue(loop, limit)
	v.Ready, v.Processing = keyViews(view.Ready), keyViews(view.Processing)
	if sick, ok := loop.(interface{ Health() error }); ok {
		if err := sick.Health(); err != nil {
			v.Problem = err.Error()
		}
	}
	return v
}

// queue returns the queue of a loop, or an empty one if the loop does not show it. The times of ready keys and of keys
// in work leave out what passed while the tap held something up.
func (i *Inspector) queue(loop reconcile.Loop, limit int) (view workqueue.View[string]) {
	viewed, ok := loop.(interface {
		View(limit int) workqueue.View[string]
	})
	if !ok {
		return view
	}
	view = viewed.View(limit)
	if i.o.Tap != nil {
		for _, keys := range [][]workqueue.KeyView[string]{view.Ready, view.Processing} {
			for n := range keys {
				keys[n].Time -= i.o.Tap.Held(keys[n].Time)
			}
		}
	}
	return view
}

func keyViews(keys []workqueue.KeyView[string]) (views []pipeview.Key) {
	for _, k := range keys {
		views = append(views, pipeview.Key{
			Key: k.Key, For: k.Time, Attempt: k.Attempt, Causes: causeTexts(k.Causes), Again: causeTexts(k.Again),
		})
	}
	return views
}
