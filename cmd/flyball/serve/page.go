package serve

import (
	"context"
	"fmt"
	"io"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball"
	"github.com/flyball-dev/flyball/cmd/flyball/nodes"
	"github.com/flyball-dev/flyball/cmd/flyball/site"
	"github.com/flyball-dev/flyball/inspect"
	"github.com/flyball-dev/flyball/inspect/tap"
	"github.com/flyball-dev/flyball/localapi/gate"
	"github.com/flyball-dev/flyball/manager"
)

// page shows the manager of the controllers from inside. With a tap, its reader holds up that manager and the clients
// of the API. It is a [manager.Runnable] of that manager.
type page struct {
	manager   *manager.Manager
	inspector *inspect.Inspector
	tap       *tap.Tap // may be nil
	out       io.Writer
	begun     chan struct{} // closed by Run when clients may come; nothing is sent
}

// newPage returns the page that o asks for, or nil.
func newPage(o Options) *page {
	if o.Page == "" {
		return nil
	}
	p := &page{out: o.Out, begun: make(chan struct{})}
	options := inspect.Options{Book: site.Handler(flyball.Docs)}
	if o.Step {
		p.tap = tap.New(tap.Options{Match: func(r *gate.Request) bool {
			return !strings.HasPrefix(r.UserAgent, nodesAgent())
		}})
		options.Tap = p.tap
	}
	p.inspector = inspect.New(options)
	return p
}

// nodesAgent is the user agent of the fake kubelet and of the namespace controller.
func nodesAgent() string { return rest.DefaultKubernetesUserAgent() + "/nodes" }

// add makes m the manager that the page shows.
func (p *page) add(m *manager.Manager) error {
	p.manager = m
	return m.Add(p)
}

// begin returns when clients may come, or ctx has ended. The manager runs until running has ended.
func (p *page) begin(ctx, running context.Context) {
	if p.tap != nil {
		p.tap.Attach(running, p.inspector.Recorder())
	}
	select {
	case <-p.begun:
	case <-ctx.Done():
	}
}

// Name implements the optional method of a [manager.Runnable].
func (p *page) Name() string { return "page" }

// Run says where the page is, when the controllers have started. With a tap, they are paused from then on.
func (p *page) Run(ctx context.Context) error {
	if nodes.Settle(ctx, p.manager); ctx.Err() != nil {
		return nil
	}
	fmt.Fprintf(p.out, "The page is at http://%s/inspect/.\n", p.manager.DebugAddr())
	if p.tap != nil {
		p.tap.Pause()
		fmt.Fprintln(p.out, "Controllers are paused, in this process and in others: let their steps through there.")
	}
	fmt.Fprintln(p.out)
	close(p.begun)
	return nil
}
