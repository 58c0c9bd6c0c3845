package inspect

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/workqueue"
)

// Pipeline is what a manager does at one moment.
type Pipeline struct {
	Time time.Time `json:"time"`
	// Ready is why the manager is not ready; empty if it is.
	Ready       string           `json:"ready,omitempty"`
	Resources   []ResourceView   `json:"resources"`
	Controllers []ControllerView `json:"controllers"`
	Flows       []FlowView       `json:"flows"`
	// Tap reports whether the Inspector has a tap, which holds steps up.
	Tap bool `json:"tap,omitempty"`
	// Steps, Subjects and Forgotten count what the Inspector has recorded.
	Steps     uint64 `json:"steps"`
	Subjects  int    `json:"subjects"`
	Forgotten uint64 `json:"forgotten"`
}

// ResourceView is one informer: its reflector, its DeltaFIFO, its cache and its handlers. Counters are totals.
type ResourceView struct {
	// Name is the resource; if several caches hold it, it tells what is special about each.
	Name string `json:"name"`
	// Objects is the size of the cache, and Version its watermark.
	Objects int64  `json:"objects"`
	Version string `json:"version"`
	// Events and Bytes count what was read from the server.
	Events int64 `json:"events"`
	Bytes  int64 `json:"bytes"`
	Lists  int64 `json:"lists"`
	// Queued is how many deltas are in the DeltaFIFO.
	Queued     int64         `json:"queued"`
	Unreadable int64         `json:"unreadable"`
	LastEvent  time.Time     `json:"lastEvent"`
	Handlers   []HandlerView `json:"handlers"`
	// Problems says in words what is wrong.
	Problems []string `json:"problems,omitempty"`
}

// FlowView is a way between the objects of a resource and a controller. Counters are totals.
type FlowView struct {
	Resource   string `json:"resource"`
	Controller string `json:"controller"`
	// Handled counts the events that the controller's handlers were called with, Written the writes of its reconciles.
	Handled uint64 `json:"handled"`
	Written uint64 `json:"written"`
}

// HandlerView is one handler of an informer.
type HandlerView struct {
	Name      string `json:"name"`
	Delivered int64  `json:"delivered"`
	Pending   int64  `json:"pending"`
	// Running is for how long the present run of calls has lasted; zero if the handler is idle.
	Running time.Duration `json:"running"`
}

// ControllerView is one controller: its queue and its workers. Counters are totals.
type ControllerView struct {
	Name       string `json:"name"`
	Workers    int    `json:"workers"`
	Adds       uint64 `json:"adds"`
	Reconciles uint64 `json:"reconciles"`
	Errors     uint64 `json:"errors"`
	Stale      uint64 `json:"stale"`
	Queued     int    `json:"queued"`
	InFlight   int    `json:"inFlight"`
	Delayed    int    `json:"delayed"`
	Failing    int    `json:"failing"`
	// Ready, Processing, Waiting and Failures list at most as many keys as were asked for.
	Ready      []KeyView `json:"ready,omitempty"`
	Processing []KeyView `json:"processing,omitempty"`
	Waiting    []KeyView `json:"waiting,omitempty"`
	Failures   []KeyView `json:"failures,omitempty"`
	// Problem says in words what is wrong; empty if nothing is.
	Problem string `json:"problem,omitempty"`
}

// KeyView is a key of a controller.
type KeyView struct {
	Key string `json:"key"`
	// For is how long the key has been ready or processed; In is when it will be ready.
	For     time.Duration `json:"for,omitempty"`
	In      time.Duration `json:"in,omitempty"`
	Attempt int           `json:"attempt,omitempty"`
	// Why is why it waits, or its last error.
	Why    string   `json:"why,omitempty"`
	Causes []string `json:"causes,omitempty"`
	// Again is why a key that is processed will be reconciled once more.
	Again []string `json:"again,omitempty"`
}

// handlerPatience is how long the calls of a handler may last before it counts as a problem.
const handlerPatience = 5 * time.Second

// Pipeline returns what m does, with at most limit keys of each kind.
func (i *Inspector) Pipeline(m *manager.Manager, limit int) Pipeline {
	recorded := i.recorder.Stats()
	p := Pipeline{
		Time: time.Now(), Steps: recorded.Steps, Subjects: recorded.Subjects, Forgotten: recorded.Evicted,
		Resources: []ResourceView{}, Controllers: []ControllerView{}, Flows: i.flows(),
		Tap: i.tap != nil,
	}
	if err := m.Ready(); err != nil {
		p.Ready = err.Error()
	}
	stats, health := m.Informers().Stats(), m.Informers().Health()
	for _, name := range slices.Sorted(maps.Keys(stats)) {
		p.Resources = append(p.Resources, resourceView(name, stats[name], health))
	}
	for _, loop := range m.Controllers() {
		p.Controllers = append(p.Controllers, controllerView(loop, limit))
	}
	slices.SortFunc(p.Controllers, func(a, b ControllerView) int { return strings.Compare(a.Name, b.Name) })
	return p
}

// flows returns what went between resources and controllers, in the order of their names.
func (i *Inspector) flows() []FlowView {
	handled, written := i.recorder.Flows()
	all := maps.Clone(handled)
	maps.Copy(all, written)
	views := []FlowView{}
	for f := range all {
		views = append(views, FlowView{f.Resource, f.Controller, handled[f], written[f]})
	}
	slices.SortFunc(views, func(a, b FlowView) int {
		return cmp.Or(strings.Compare(a.Resource, b.Resource), strings.Compare(a.Controller, b.Controller))
	})
	return views
}

func resourceView(name string, s informer.Stats, health []informer.Health) ResourceView {
	v := ResourceView{
		Name: name, Objects: s.Objects, Version: s.ResourceVersion, Events: s.Events, Bytes: s.Bytes, Lists: s.Lists,
		Queued: s.Queued, Unreadable: s.Unreadable, LastEvent: s.LastEvent, Handlers: []HandlerView{},
	}
	for _, h := range s.Handlers {
		v.Handlers = append(v.Handlers, HandlerView{h.Name, h.Delivered, h.Pending, h.Running})
		if h.Running > handlerPatience {
			v.Problems = append(v.Problems, "handler "+h.Name+" has been busy for "+short(h.Running))
		}
	}
	for _, h := range health {
		if h.Resource == name {
			v.Problems = append(v.Problems, problems(h)...)
		}
	}
	return v
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
	if h.Doubt != nil {
		texts = append(texts, h.Doubt.Error())
	}
	if h.UnreadableErr != nil {
		texts = append(texts, "unreadable: "+h.UnreadableErr.Error())
	}
	if h.IndexErr != nil {
		texts = append(texts, "left out of an index: "+h.IndexErr.Error())
	}
	return texts
}

func controllerView(loop reconcile.Loop, limit int) ControllerView {
	s, w := loop.Stats(), loop.Work()
	v := ControllerView{
		Name: loop.Name(), Workers: s.Workers, Adds: s.Adds, Reconciles: s.Syncs, Errors: s.Errors, Stale: s.Stale,
		Queued: s.Queued, InFlight: s.InFlight, Delayed: len(w.Delayed), Failing: len(w.Failing),
	}
	for _, d := range w.Delayed[:min(limit, len(w.Delayed))] {
		v.Waiting = append(v.Waiting, KeyView{Key: d.Key, In: d.In, Attempt: d.Attempt, Why: d.Why})
	}
	for _, f := range w.Failing[:min(limit, len(w.Failing))] {
		why := f.Err.Error()
		if f.GivenUp {
			why = "given up: " + why
		}
		failure := KeyView{Key: f.Key, Attempt: f.Attempts, Why: why, Causes: causeTexts(f.Causes)}
		v.Failures = append(v.Failures, failure)
	}
	if viewed, ok := loop.(interface {
		View(limit int) workqueue.View[string]
	}); ok {
		view := viewed.View(limit)
		v.Ready, v.Processing = keyViews(view.Ready), keyViews(view.Processing)
	}
	if sick, ok := loop.(interface{ Health() error }); ok {
		if err := sick.Health(); err != nil {
			v.Problem = err.Error()
		}
	}
	return v
}

func keyViews(keys []workqueue.KeyView[string]) (views []KeyView) {
	for _, k := range keys {
		views = append(views, KeyView{
			Key: k.Key, For: k.Time, Attempt: k.Attempt, Causes: causeTexts(k.Causes), Again: causeTexts(k.Again),
		})
	}
	return views
}
