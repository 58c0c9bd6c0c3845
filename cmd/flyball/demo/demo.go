package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/internal/loopback"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/manager"
)

// Options configures the demo.
type Options struct {
	// Speed is the speed of the fake kubelet: at 1 it starts or stops a pod in about half a second. It must be
	// positive.
	Speed float64
	// Timeout bounds each step. It must be positive.
	Timeout time.Duration
	// Keep, if not nil, is called after the story with the API, which ends when Keep returns.
	Keep func(context.Context, *localapi.Server) error
	// Page is the address that shows the manager from inside, from the beginning until the context is done. Empty means
	// none.
	Page string
	// Step holds the controllers up at each step, until the reader of the page lets it through. It needs Page.
	Step bool
	// Scenario is the name of a step. It chooses the story: the life of a Deployment, that of a lease, or troubles.
	// With Step, the controllers are held up from this step on. The steps before it run by themselves. Empty means the
	// first step of the first story.
	Scenario string
	// Book is served beside the page, for its links to chapters. Nil means that they lead to the repository.
	Book http.Handler
	// API are the options of the embedded API. The demo sets Gate.
	API localapi.Options
	// Here, if not nil, gets the page and the API. It is called once, when they answer. The page needs no address then,
	// and the cluster stays until the context is done, even if the story fails.
	Here func(Here)
	// NoStory leaves the cluster to the users of the page and the API.
	NoStory bool
	// Add, if not nil, adds further controllers to each manager of controllers.
	Add func(*manager.Manager) error
	// Shown, if not nil, is called with the URL of the page when the page is there and, with Step, the controllers are
	// held up.
	Shown func(url string)
	// Cluster is the cluster to play on. Its own controllers and kubelets do the work, so Speed, Keep, Page and Step
	// have no meaning. Nil means an embedded one.
	Cluster *rest.Config
	// Images are the two images of the story. Empty means two of nginx.
	Images []string
	// Out receives the story, with live bars if it is a terminal.
	Out io.Writer
}

// Here is a demo for a program that shows it without a socket.
type Here struct {
	// Page answers the requests of the page.
	Page http.Handler
	// API is a configuration for clients of the API.
	API *rest.Config
	// Restart ends the program of the controllers, as kill -9 would, and starts it again.
	Restart func()
}

// Scenarios returns the names of the steps of all stories, in order.
func Scenarios() (names []string) {
	s := newStory("", nginx, 0)
	return slices.Concat(namesOf(s.steps()), namesOf(s.leaseSteps()), namesOf(s.troubleSteps()))
}

func namesOf(steps []step) (names []string) {
	for _, s := range steps {
		names = append(names, s.name)
	}
	return names
}

// Validate returns an error if an option is invalid.
func (o Options) Validate() error {
	if !(o.Speed > 0 && o.Speed <= 1000) { // also rejects NaN
		return fmt.Errorf("--speed %g: it must be more than 0 and at most 1000", o.Speed)
	}
	if o.Timeout <= 0 {
		return fmt.Errorf("--timeout %s: it must be more than 0", o.Timeout)
	}
	if len(o.Images) != 0 && len(o.Images) != 2 {
		return fmt.Errorf("--images: it must be two, are %d", len(o.Images))
	}
	if o.Step && !o.shows() {
		return errors.New("--step needs --page")
	}
	if names := Scenarios(); o.Scenario != "" && !slices.Contains(names, o.Scenario) {
		return fmt.Errorf("--scenario %s: it must be one of %s", o.Scenario, strings.Join(names, ", "))
	}
	if o.Page != "" {
		return loopback.Check("--page", o.Page)
	}
	return nil
}

// shows reports whether there is a page.
func (o Options) shows() bool { return o.Page != "" || o.Here != nil }

// aDay bounds a step of the story whose reader lets each step of the controllers through.
const aDay = 24 * time.Hour

// startDelay is how long the kubelet takes to start or stop a pod at speed 1.
const startDelay = 400 * time.Millisecond

// Run plays the story.
//
// Errors: a step that did not converge, with what is missing; an interruption.
func Run(ctx context.Context, o Options) error {
	if err := o.Validate(); err != nil {
		return err
	}
	images := nginx
	if len(o.Images) > 0 {
		images = [2]string(o.Images)
	}
	if o.Cluster != nil {
		return runRemote(ctx, o, images)
	}
	delay := time.Duration(float64(startDelay) / o.Speed)
	c := &cluster{o: o}
	c.network = newNetwork(func(ctx context.Context) error { return c.server.Compact(ctx) })
	tale := newStory(metav1.NamespaceDefault, images, quietFor(delay))
	tale.cut, tale.network = c.cut, c.network
	steps := tale.steps()
	has := func(steps []step) bool { return slices.Contains(namesOf(steps), o.Scenario) }
	switch leases, troubles := tale.leaseSteps(), tale.troubleSteps(); {
	case has(leases):
		steps, c.elects = leases, true
	case has(troubles):
		steps = troubles
	}
	told := newBoard(steps)
	story := told.read
	if o.NoStory {
		steps, story = nil, nil
	}
	if err := c.open(delay, story); err != nil {
		return err
	}
	if o.Here != nil {
		o.Here(Here{Page: c, API: c.config(), Restart: c.crash})
	}
	start := time.Now()
	fmt.Fprintf(o.Out, `A Kubernetes API, a fake kubelet and our controllers, in this process:
%s.
Behind each step: the watch events, queued keys and syncs that it took.

`, wrap(c.program.names))
	return c.run(ctx, func(ctx context.Context) error {
		url := ""
		if o.Page != "" {
			url = fmt.Sprintf("http://%s/inspect/", c.program.manager.DebugAddr())
			fmt.Fprintf(o.Out, "Watch it at %s from inside.\n\n", url)
		}
		d := director{
			client: c.client, look: c.look, changed: c.changed, counts: c.counts,
			screen: newScreen(o.Out), timeout: o.Timeout, board: told,
		}
		shown := false
		d.begin = func(s step) {
			if shown || o.Scenario != "" && o.Scenario != s.name {
				return
			}
			shown = true
			if c.tap != nil {
				fmt.Fprint(o.Out, "The controllers are paused: let their steps through there.\n\n")
				c.tap.Pause()
				d.timeout = aDay
			}
			if o.Shown != nil {
				o.Shown(url)
			}
		}
		if err := d.play(ctx, steps); err != nil {
			if o.Here == nil || ctx.Err() != nil {
				return err
			}
			told.show(len(steps), progress{}, "the story has failed ("+err.Error()+")")
			<-ctx.Done()
			return nil
		}
		sum := c.counts()
		took := fmt.Sprintf("%d watch events, %d queued keys, %d syncs in %s", sum.watch, sum.queue, sum.sync,
			time.Since(start).Round(10*time.Millisecond))
		told.show(len(steps), progress{}, took)
		switch {
		case o.Keep != nil:
			if err := o.Keep(ctx, c.server); err != nil {
				return err
			}
		case o.Here != nil:
			<-ctx.Done()
		case o.Page != "":
			fmt.Fprintf(o.Out, "\n%s stays until Ctrl-C.\n", url)
			<-ctx.Done()
		}
		_, err := fmt.Fprintf(o.Out, "\ndemo: ok: %s\n", took)
		return err
	})
}

// wrap lists names, two to a line.
func wrap(names []string) string {
	var b strings.Builder
	for i, n := range names {
		switch {
		case i == 0:
		case i%2 == 0:
			b.WriteString(",\n")
		default:
			b.WriteString(", ")
		}
		b.WriteString(n)
	}
	return b.String()
}

// quietFor returns how long the demo watches a rollout before it takes it as stuck: several times the start of a pod.
func quietFor(delay time.Duration) time.Duration { return max(4*delay, 300*time.Millisecond) }
