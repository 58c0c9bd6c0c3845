package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/examples/operators/items/stock"
	"github.com/flyball-dev/flyball/localapi/storage"
	"github.com/flyball-dev/flyball/manager"
)

// converge is the whole run: open the store, let want write the desired state, run the controllers until there is
// nothing more to do, and print the result. It prints the result also if something failed or the time was over.
func (o *options) converge(c *cobra.Command, want func(context.Context, client.Client) error) (err error) {
	if err := o.check(); err != nil {
		return &usageError{err}
	}
	var logger klog.Logger // discards everything: the report has what matters
	if o.verbose {
		logger = klog.Background()
	}
	ctx, release := manager.SetupSignals(klog.NewContext(c.Context(), logger))
	defer release()
	ctx, cancel := context.WithTimeoutCause(ctx, o.timeout, fmt.Errorf("--timeout: %v are over", o.timeout))
	defer cancel()

	s, err := o.open(ctx)
	if err != nil {
		return cutShort(ctx, err)
	}
	defer func() { err = errors.Join(err, s.close(ctx)) }()
	before, _ := s.objects.Revision()
	if err := want(ctx, s.client); err != nil {
		return cutShort(ctx, err)
	}
	p := o.progressOn(c.ErrOrStderr())
	mgr, err := stock.NewManager(ctx, s.config, stock.Options{Workers: o.workers, Print: o.printer(p)})
	if err != nil {
		return err
	}
	summary, failed := mgr.RunUntilIdle(ctx, manager.IdleOptions{Wait: o.wait, Retries: o.retries, Progress: p.show})
	p.wipe()
	telling := context.WithoutCancel(ctx)
	changes, err := storage.ChangesSince(telling, s.objects, storage.TenantPrefix(o.tenant), before)
	if err == nil {
		err = o.tell(telling, c, s.client, &outcome{summary, changes})
	}
	return errors.Join(ending(ctx, summary, failed), err)
}

// cutShort adds the reason to an error that came after the timeout or a signal.
func cutShort(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return fmt.Errorf("%w: %w", context.Cause(ctx), err)
}

// list prints what is stored.
func (o *options) list(c *cobra.Command) (err error) {
	if err := o.checkStore(); err != nil {
		return &usageError{err}
	}
	ctx := klog.NewContext(c.Context(), klog.Logger{})
	s, err := o.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close(ctx)) }()
	return o.tell(ctx, c, s.client, nil)
}

// ending returns how the run ended, in one line, or nil if everything was done. The number of things left is a lower
// bound: it counts what was queued, but not what events on their way would have queued.
func ending(ctx context.Context, s manager.Summary, failed error) error {
	var keys *manager.FailedError
	switch signal := (manager.SignalError{}); {
	case failed == nil:
		return nil
	case errors.As(context.Cause(ctx), &signal):
		return fmt.Errorf("stopped by %v, at least %d left; items run goes on with them", signal.Signal, s.Pending)
	case ctx.Err() != nil:
		return fmt.Errorf("%w, at least %d left; items run goes on with them", context.Cause(ctx), s.Pending)
	case errors.As(failed, &keys):
		return fmt.Errorf("%d failed; items run tries again", len(keys.Keys))
	}
	return failed
}

// printer returns the label printer. It takes some time, and can be stopped only between labels.
func (o *options) printer(p *progress) stock.Printer {
	return func(_ context.Context, sku, text string) error {
		time.Sleep(o.printDelay)
		if o.printDelay > 0 {
			p.line("printed " + sku + "  " + text)
		}
		return nil
	}
}

// progress shows the progress on one line of a terminal, or on one line per step if requested. Otherwise it shows
// nothing.
type progress struct {
	out      io.Writer
	terminal bool
	lines    bool
	last     manager.Progress
}

func (o *options) progressOn(out io.Writer) *progress {
	p := &progress{out: out, lines: o.progress}
	if f, ok := out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		p.terminal = true
	}
	return p
}

// show is called from one goroutine only.
func (p *progress) show(now manager.Progress) {
	text := fmt.Sprintf("%d reconciles, %d queued, %d in flight, %d errors", now.Processed, now.Queued, now.InFlight,
		now.Errors)
	switch {
	case p.terminal:
		fmt.Fprintf(p.out, "\r\x1b[K%s, %.1fs", text, now.Elapsed.Seconds())
	case p.lines &&
		(now.Processed != p.last.Processed || now.InFlight != p.last.InFlight || now.Queued != p.last.Queued):
		fmt.Fprintf(p.out, "progress: %s\n", text)
	}
	p.last = now
}

// line prints a line in between. It does so with one write, so it may be called from any goroutine.
func (p *progress) line(text string) {
	switch {
	case p.terminal:
		fmt.Fprintf(p.out, "\r\x1b[K%s\n", text)
	case p.lines:
		fmt.Fprintf(p.out, "%s\n", text)
	}
}

// wipe removes the line.
func (p *progress) wipe() {
	if p.terminal {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
}
