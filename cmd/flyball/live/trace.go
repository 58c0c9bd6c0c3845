package live

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/flyball-dev/flyball/inspect"
)

// Trace prints what happened to an object.
type Trace struct {
	Client *Client
	// Object names the object. Its Resource may be a kind or a singular.
	Object inspect.Ref
	// AnyNamespace looks for the name elsewhere if there is nothing in the object's namespace.
	AnyNamespace bool
	// Follow goes on with what happens from then on, until the context is done.
	Follow bool
	// JSON prints the timeline as JSON; with Follow, one step a line.
	JSON bool
	Out  io.Writer
}

// period is the time between two questions of one who follows.
const period = time.Second

// Run prints the timeline.
//
// Errors: there is no answer; the server does not know the resource.
func (t *Trace) Run(ctx context.Context) error {
	timeline, err := t.find(ctx)
	if err != nil {
		return err
	}
	if !t.Follow {
		return t.print(timeline)
	}
	var f follower
	for first := true; ; first = false {
		if !first {
			select {
			case <-time.After(period):
			case <-ctx.Done():
				return nil
			}
			if timeline, err = t.read(ctx, timeline.Object); err != nil {
				if ctx.Err() != nil {
					return nil
				}
				return err
			}
		}
		if news := f.news(timeline); first || len(news.Steps) > 0 {
			if err := t.add(news, first); err != nil {
				return err
			}
		}
	}
}

func (t *Trace) read(ctx context.Context, object inspect.Ref) (inspect.Timeline, error) {
	var timeline inspect.Timeline
	query := url.Values{"resource": {object.Resource}, "namespace": {object.Namespace}, "name": {object.Name}}
	err := t.Client.get(ctx, "object", query, &timeline)
	return timeline, err
}

// find reads the timeline of the object, in whatever namespace it is if it may.
func (t *Trace) find(ctx context.Context) (inspect.Timeline, error) {
	timeline, err := t.read(ctx, t.Object)
	if err != nil || len(timeline.Steps) > 0 || !t.AnyNamespace {
		return timeline, err
	}
	var found []inspect.Ref
	if err := t.Client.get(ctx, "objects", url.Values{"find": {t.Object.Name}}, &found); err != nil {
		return timeline, err
	}
	found = slices.DeleteFunc(found, func(r inspect.Ref) bool {
		return r.Resource != timeline.Object.Resource || r.Name != t.Object.Name
	})
	switch len(found) {
	case 0:
		return timeline, nil
	case 1:
		return t.read(ctx, found[0])
	}
	var namespaces []string
	for _, r := range found {
		namespaces = append(namespaces, r.Namespace)
	}
	return timeline, fmt.Errorf("%s %s is in several namespaces: give one of %s with -n", timeline.Object.Resource,
		t.Object.Name, strings.Join(slices.Sorted(slices.Values(namespaces)), ", "))
}

func (t *Trace) print(timeline inspect.Timeline) error {
	if !t.JSON {
		return timeline.WriteText(t.Out)
	}
	e := json.NewEncoder(t.Out)
	e.SetIndent("", "  ")
	return e.Encode(timeline)
}

// add prints the next steps of a timeline.
func (t *Trace) add(news inspect.Timeline, first bool) error {
	if t.JSON {
		e := json.NewEncoder(t.Out)
		for _, step := range news.Steps {
			if err := e.Encode(step); err != nil {
				return err
			}
		}
		return nil
	}
	var b strings.Builder
	if err := news.WriteText(&b); err != nil {
		return err
	}
	text := b.String()
	if !first {
		_, text, _ = strings.Cut(text, "\n") // the heading
	}
	_, err := io.WriteString(t.Out, text)
	return err
}

// follower tells the steps that are new from those that it has been shown.
type follower struct{ shown map[uint64]bool }

// news returns the timeline with the steps that were not shown yet. A reconcile is shown when it has ended.
func (f *follower) news(t inspect.Timeline) inspect.Timeline {
	shown := map[uint64]bool{}
	if f.shown != nil {
		t.Before = 0
	}
	var steps []inspect.Entry
	for _, s := range t.Steps {
		if s.Running {
			continue
		}
		if shown[s.Number] = true; !f.shown[s.Number] {
			steps = append(steps, s)
		}
	}
	t.Steps, f.shown = steps, shown
	return t
}
