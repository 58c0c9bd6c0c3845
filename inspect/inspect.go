package inspect

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/flyball-dev/flyball/internal/trace"
)

// Options bound what an [Inspector] keeps. The zero value means the defaults.
type Options struct {
	// Subjects is how many objects and keys have steps; zero means 2,000. The one whose last step is the oldest gives
	// way to a new one, unless somebody looks at it.
	Subjects int
	// Steps is how many steps each of them has at most; zero means 50.
	Steps int
	// States is how many changes have a difference; zero means 4,096. StateBytes bounds the size of the objects from
	// which the differences are made; zero means 32 MiB.
	States, StateBytes int
	// Tap is served at /inspect/api/tap. Package tap has one, for programs whose API server is in the same process.
	Tap interface {
		http.Handler
		// Held returns how much of the last d passed while a step was held up.
		Held(d time.Duration) time.Duration
	}
	// Story returns the story that is being played, as JSON that the page knows; the demo has one. Nil means none.
	Story func() any
	// Book is served at /inspect/book/, for links to the chapters. Nil means that they lead to the repository.
	Book http.Handler
}

// Inspector records what managers do, and shows it. It implements manager.Inspector.
//
// Concurrency: all methods may be called from any goroutine.
type Inspector struct {
	recorder *trace.Recorder
	o        Options
}

// New returns an Inspector that has recorded nothing.
func New(o Options) *Inspector {
	return &Inspector{trace.New(trace.Options{
		Subjects: o.Subjects, Steps: o.Steps, States: o.States, StateBytes: o.StateBytes,
	}), o}
}

// Context returns a context whose informers, controllers and clients report to the Inspector. A manager calls it for
// its own.
func (i *Inspector) Context(ctx context.Context) context.Context { return trace.With(ctx, i.recorder) }

// Recorder returns what holds the steps, for packages of this module.
func (i *Inspector) Recorder() *trace.Recorder { return i.recorder }

// Ref names an object.
type Ref struct {
	// Resource is the plural name with the group: "pods", "deployments.apps".
	Resource  string `json:"resource"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// String returns "resource namespace/name".
func (r Ref) String() string { return r.subject().String() }

func (r Ref) subject() trace.Subject {
	return trace.Subject{Resource: r.Resource, Namespace: r.Namespace, Name: r.Name}
}

func refOf(s trace.Subject) Ref { return Ref{s.Resource, s.Namespace, s.Name} }

// Find returns at most limit objects that have steps, those with the newest steps first. Each word of the text is in
// their resource or "namespace/name".
func (i *Inspector) Find(text string, limit int) []Ref {
	words := strings.Fields(strings.ToLower(text))
	var refs []Ref
	for _, s := range i.recorder.Subjects(limit, func(s trace.Subject) bool {
		return s.Resource != "" && !slices.ContainsFunc(words, func(word string) bool {
			return !strings.Contains(strings.ToLower(s.Key()), word) && !strings.Contains(s.Resource, word)
		})
	}) {
		refs = append(refs, refOf(s))
	}
	return slices.Clip(refs)
}
