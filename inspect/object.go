package inspect

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/flyball-dev/flyball/internal/trace"
	"github.com/flyball-dev/flyball/workqueue"
)

// Timeline is what happened to an object, oldest first.
type Timeline struct {
	Object Ref     `json:"object"`
	Steps  []Entry `json:"steps"`
	// Before is how many older steps of the object itself are forgotten.
	Before uint64 `json:"before,omitempty"`
	// Why says why nothing happens to the object, or what happens now.
	Why []string `json:"why,omitempty"`
}

// The stages are where a step of a timeline took place.
const (
	stageEvent     = "event"     // a watch brought an event about the object
	stageCache     = "cache"     // the cache took over a state from the server
	stageHandler   = "handler"   // a controller's handler turned it into keys
	stageReconcile = "reconcile" // a controller reconciled a key
	stageRead      = "read"      // a read was held back for an own write
	stageLog       = "log"       // the reconcile logged a line
	stageWrite     = "write"     // a write was answered, or its answer was lost
)

// Entry is one step of a [Timeline].
type Entry struct {
	// Number orders the steps of the whole process.
	Number uint64    `json:"number"`
	Time   time.Time `json:"time"`
	// Stage is where the step took place: event, cache, handler, reconcile, read, log or write.
	Stage string `json:"stage"`
	// Controller, Key and Run name the reconcile that the step belongs to; of a handler, the controller.
	Controller string `json:"controller,omitempty"`
	Key        string `json:"key,omitempty"`
	Run        uint64 `json:"run,omitempty"`
	// Text is the step in words.
	Text string `json:"text"`
	// Details are what changed, or the causes of a reconcile.
	Details []string `json:"details,omitempty"`
	// Version is the resource version of an event, the one that the cache has taken over, or that the server gave to a
	// write.
	Version string `json:"version,omitempty"`
	// From is the number of the write that the event brings, or the cache if no event did; zero if it is not known.
	From uint64 `json:"from,omitempty"`
	// Object is what a write is about, if it is another object.
	Object *Ref          `json:"object,omitempty"`
	Took   time.Duration `json:"took,omitempty"`
	Failed bool          `json:"failed,omitempty"`
	// Running: the reconcile has not ended.
	Running bool `json:"running,omitempty"`
	// metadata: the step is of a cache of metadata.
	metadata bool
}

// Timeline returns what happened to an object: the events of watches, the changes that the caches took over, the keys
// that handlers made of them, the reconciles of these keys that the object caused or whose name it has, with all that
// they did, and the writes of other reconciles to it.
func (i *Inspector) Timeline(object Ref) Timeline {
	t := Timeline{Object: object}
	subject := object.subject()
	steps, before := i.recorder.Steps(subject)
	t.Before = before
	keys := map[trace.Subject]bool{}
	runs := map[run]bool{} // those that wrote to the object
	for n := range steps {
		s := &steps[n]
		switch s.Kind {
		case trace.Handled:
			for _, k := range s.Keys {
				keys[trace.Subject{Controller: s.Other.Controller, Namespace: k.Namespace, Name: k.Name}] = true
			}
		case trace.Wrote:
			if s.Run != 0 {
				keys[s.Other], runs[run{s.Other, s.Run}] = true, true
			}
		}
	}
	seen := map[uint64]bool{}
	for key := range keys {
		of, _ := i.recorder.Steps(key)
		own := key.Namespace == object.Namespace && key.Name == object.Name
		for n := range of {
			s := &of[n]
			if s.Kind == trace.Ran && (own || s.Has(subject)) {
				runs[run{key, s.Run}] = true
			}
		}
		for n := range of {
			if s := &of[n]; runs[run{key, s.Run}] && !seen[s.Number] {
				seen[s.Number] = true
				t.Steps = append(t.Steps, entryOf(key, s))
			}
		}
	}
	for n := range steps {
		// A write of a reconcile is among the steps of its key, unless these are forgotten.
		if s := &steps[n]; s.Kind != trace.Wrote || s.Run == 0 || !hasWrite(t.Steps, s) {
			t.Steps = append(t.Steps, entryOf(subject, s))
		}
	}
	slices.SortFunc(t.Steps, func(a, b Entry) int { return cmp.Compare(a.Number, b.Number) })
	link(object, t.Steps)
	return t
}

type run struct {
	key    trace.Subject
	number uint64
}

// hasWrite reports whether the steps of keys have the write that an object's step is about.
func hasWrite(entries []Entry, s *trace.Step) bool {
	return slices.ContainsFunc(entries, func(e Entry) bool { return e.Stage == stageWrite && e.Number == s.Number })
}

// link has the first step that shows a write of this process refer to it, an event as a rule, and drops the object from
// its own writes. A step of a cache of metadata does so only if there is no other.
func link(object Ref, entries []Entry) {
	writes, shown := map[string]uint64{}, map[string]*Entry{} // by version
	for n := range entries {
		e := &entries[n]
		if e.Object != nil && *e.Object == object {
			e.Object = nil
		}
		switch {
		case e.Stage == stageWrite && e.Object == nil && !e.Failed:
			writes[e.Version] = e.Number
		case (e.Stage == stageEvent || e.Stage == stageCache) && e.Version != "":
			before := shown[e.Version]
			if before != nil && (!before.metadata || e.metadata) {
				continue
			}
			if before != nil {
				before.From = 0
			}
			e.From, shown[e.Version] = writes[e.Version], e
		}
	}
}

// entryOf puts a step into words.
func entryOf(of trace.Subject, s *trace.Step) Entry {
	e := Entry{
		Number: s.Number, Time: s.Time, Run: s.Run, Took: s.Took, Failed: s.Err != nil, metadata: s.Text == "metadata",
	}
	if of.Controller != "" {
		e.Controller, e.Key = of.Controller, of.Key()
	}
	switch s.Kind {
	case trace.Received:
		e.Stage, e.Version = stageEvent, s.Version
		e.Text = s.Event + trace.OfForm(s.Text) + ": version " + s.Version
		if s.Err != nil {
			e.Text += ", which the cache cannot take over: " + s.Err.Error()
		}
	case trace.Changed:
		e.Stage, e.Version = stageCache, s.Version
		e.Text, e.Details = changeText(s), differences(of.Resource, s.Old, s.New)
	case trace.Handled:
		e.Stage, e.Controller, e.Version = stageHandler, s.Other.Controller, s.Version
		e.Text = handledText(s)
	case trace.Ran:
		e.Stage, e.Running = stageReconcile, s.Outcome == ""
		e.Text = runText(s)
		for _, c := range s.Causes {
			e.Details = append(e.Details, causeText(workqueue.Cause(c)))
		}
	case trace.Waited:
		e.Stage = stageRead
		e.Text = fmt.Sprintf("a read of %s was held back for %s, until the cache had an own write",
			strings.TrimSpace(s.Text), short(s.Took))
		if s.Err != nil {
			e.Text = fmt.Sprintf("a read of %s failed after %s: %v", strings.TrimSpace(s.Text), short(s.Took), s.Err)
		}
	case trace.Logged:
		e.Stage, e.Text = stageLog, s.Text
	case trace.Wrote:
		writeEntry(&e, of, s)
	}
	return e
}

func changeText(s *trace.Step) string {
	text := map[string]string{"Add": "added", "Update": "updated", "Delete": "deleted"}[s.Event] + trace.OfForm(s.Text)
	if s.Initial {
		text += ", by the first list"
	}
	return text + ": version " + s.Version
}

func handledText(s *trace.Step) string {
	if len(s.Keys) == 0 {
		return fmt.Sprintf("%s: no key: a predicate dropped the event, or the handler maps it to nothing", s.Event)
	}
	keys := make([]string, len(s.Keys))
	for n, k := range s.Keys {
		keys[n] = trace.Subject{Namespace: k.Namespace, Name: k.Name}.Key()
		if k.After > 0 {
			keys[n] += " in " + short(k.After)
		}
	}
	text := fmt.Sprintf("%s: key %s", s.Event, strings.Join(keys, ", "))
	if s.More > 0 {
		text += fmt.Sprintf(" and %d more", s.More)
	}
	return text
}

func runText(s *trace.Step) string {
	var b strings.Builder
	switch {
	case s.Outcome == "":
		b.WriteString("running")
	case s.Outcome == "done" && s.Next > 0:
		fmt.Fprintf(&b, "done in %s; again in %s", short(s.Took), short(s.Next))
	case s.Outcome == "done":
		fmt.Fprintf(&b, "done in %s", short(s.Took))
	case s.Outcome == "retry":
		fmt.Fprintf(&b, "failed after %s, will be retried: %v", short(s.Took), s.Err)
	case s.Outcome == "stale":
		fmt.Fprintf(&b, "put off after %s: %v", short(s.Took), s.Err)
	default:
		fmt.Fprintf(&b, "%s after %s: %v", s.Outcome, short(s.Took), s.Err)
	}
	if s.Attempt > 0 {
		fmt.Fprintf(&b, " (attempt %d)", s.Attempt+1)
	}
	if s.Queued > 0 {
		fmt.Fprintf(&b, "; was queued for %s", short(s.Queued))
	}
	return b.String()
}

func causeTexts(causes []workqueue.Cause) (texts []string) {
	for _, c := range causes {
		texts = append(texts, causeText(c))
	}
	return texts
}

func causeText(c workqueue.Cause) string {
	text := strings.Join(slices.DeleteFunc([]string{c.Event, c.Source, c.Object}, func(s string) bool {
		return s == ""
	}), " ")
	if c.ResourceVersion != "" {
		text += ", version " + c.ResourceVersion
	}
	return "because of " + text
}

func writeEntry(e *Entry, of trace.Subject, s *trace.Step) {
	e.Stage, e.Version = stageWrite, s.Version
	e.Failed = s.Err != nil || !strings.HasPrefix(s.Outcome, "2")
	object := of
	if of.Controller != "" {
		object = s.Other
	} else {
		e.Controller, e.Key = s.Other.Controller, ""
		if s.Other.Controller != "" {
			e.Key = s.Other.Key()
		}
	}
	ref := refOf(object)
	e.Object = &ref
	what := object.Resource
	if s.Text != "" {
		what += "/" + s.Text
	}
	e.Text = fmt.Sprintf("%s %s %s: %s", s.Event, what, object.Key(), s.Outcome)
	if s.Version != "" {
		e.Text += ", version " + s.Version
	}
	if s.Err != nil {
		e.Text += ": " + s.Err.Error()
	}
}

// short rounds a duration for people.
func short(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return d.Round(time.Microsecond).String()
	case d < time.Second:
		return d.Round(100 * time.Microsecond).String()
	}
	return d.Round(100 * time.Millisecond).String()
}
