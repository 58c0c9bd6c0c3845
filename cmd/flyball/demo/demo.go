package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/cmd/flyball/serve"
)

// Options configures the demo.
type Options struct {
	// Speed is the speed of the fake kubelet: at 1 it starts or stops a pod in about half a second. It must be
	// positive.
	Speed float64
	// Timeout bounds each step. It must be positive.
	Timeout time.Duration
	// Keep serves the API on a loopback port after the story, until the context is done.
	Keep bool
	// Page is the address that shows the manager from inside, from the beginning until the context is done. Empty means
	// none.
	Page string
	// Step holds the controllers up at each step, until the reader of the page lets it through. It needs Page.
	Step bool
	// Scenario is the name of a step. It chooses the story: the life of a Deployment, or that of a lease. With Step,
	// the controllers are held up from this step on. The steps before it run by themselves. Empty means the first step
	// of the first story.
	Scenario string
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

// Scenarios returns the names of the steps of all stories, in order.
func Scenarios() (names []string) {
	s := newStory("", nginx, 0)
	return append(namesOf(s.steps()), namesOf(s.leaseSteps())...)
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
	if o.Step && o.Page == "" {
		return errors.New("--step needs --page")
	}
	if names := Scenarios(); o.Scenario != "" && !slices.Contains(names, o.Scenario) {
		return fmt.Errorf("--scenario %s: it must be one of %s", o.Scenario, strings.Join(names, ", "))
	}
	if o.Page != "" {
		return serve.CheckLoopback("--page", o.Page)
	}
	return nil
}

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
	c := &cluster{}
	tale := newStory(metav1.NamespaceDefault, images, quietFor(delay))
	tale.cut = c.cut
	steps := tale.steps()
	if o.Scenario != "" && !slices.Contains(namesOf(steps), o.Scenario) {
		steps, c.elects = tale.leaseSteps(), true
	}
	told := newBoard(steps)
	if err := c.open(delay, o.Page, o.Step, told.read); err != nil {
		return err
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
			return err
		}
		sum := c.counts()
		took := fmt.Sprintf("%d watch events, %d queued keys, %d syncs in %s", sum.watch, sum.queue, sum.sync,
			time.Since(start).Round(10*time.Millisecond))
		told.show(len(steps), progress{}, took)
		switch {
		case o.Keep:
			if err := keep(ctx, c, o.Out); err != nil {
				return err
			}
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

// keep serves the API on loopback until ctx is done.
func keep(ctx context.Context, c *cluster, out io.Writer) error {
	dir, err := os.MkdirTemp("", "flyball-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	socket, err := serve.Open(ctx, "127.0.0.1:0", c.known, nil)
	if err != nil {
		return fmt.Errorf("serve the API on loopback: %w", err)
	}
	kubeconfig := filepath.Join(dir, "kubeconfig")
	if err := socket.WriteKubeconfig(kubeconfig); err != nil {
		return errors.Join(err, socket.Close())
	}
	fmt.Fprintf(out, `
The API now listens on %s, and everything still runs. Try:

  export KUBECONFIG=%s
  kubectl create deployment hello --image=nginx --replicas=3 && kubectl rollout status deployment/hello
  kubectl get deployments,replicasets,pods -o wide
  kubectl set image deployment/hello nginx=nginx:1.29 && kubectl get pods --watch

Ctrl-C stops it.
`, socket.Addr(), kubeconfig)
	return socket.Serve(ctx, c.server)
}
