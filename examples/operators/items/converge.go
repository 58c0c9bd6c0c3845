package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/conditions"
	"github.com/flyball-dev/flyball/examples/operators/items/api"
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

// outcome is the result of a run.
type outcome struct {
	summary manager.Summary
	changes string
}

// inventory is the whole stock, sorted by name.
type inventory struct {
	Categories []api.Category `json:"categories"`
	Items      []api.Item     `json:"items"`
}

func inventoryOf(ctx context.Context, c client.Client) (inventory, error) {
	var categories api.CategoryList
	var items api.ItemList
	if err := c.List(ctx, &categories, client.InNamespace(namespace)); err != nil {
		return inventory{}, fmt.Errorf("list categories: %w", err)
	}
	if err := c.List(ctx, &items, client.InNamespace(namespace)); err != nil {
		return inventory{}, fmt.Errorf("list items: %w", err)
	}
	slices.SortFunc(categories.Items, func(a, b api.Category) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(items.Items, func(a, b api.Item) int { return cmp.Compare(a.Name, b.Name) })
	return inventory{categories.Items, items.Items}, nil
}

// tell prints the stock and, after a run, its result.
func (o *options) tell(ctx context.Context, c *cobra.Command, cl client.Client, done *outcome) error {
	all, err := inventoryOf(ctx, cl)
	if err != nil {
		return err
	}
	out, about := c.OutOrStdout(), c.OutOrStdout()
	if o.output == jsonForm {
		about = c.ErrOrStderr()
		err = all.writeJSON(out)
	} else {
		err = all.writeTables(out)
	}
	if err == nil && done != nil {
		err = done.write(about)
	}
	return err
}

func (all inventory) writeJSON(out io.Writer) error {
	for i := range all.Items {
		all.Items[i].ManagedFields = nil
	}
	for i := range all.Categories {
		all.Categories[i].ManagedFields = nil
	}
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(all)
}

func (all inventory) writeTables(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "CATEGORY\tPREFIX\tSHELF\tITEMS\tPIECES\tVALUE\tSTATE")
	for _, c := range all.Categories {
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%d\t%s\t%s\n", c.Name, c.Spec.Prefix, cmp.Or(c.Spec.Shelf, "-"),
			c.Status.Items, c.Status.Quantity, money(c.Status.Value), stateOf(c.Status.Conditions))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w)
	fmt.Fprintln(w, "ITEM\tSKU\tSHELF\tPHASE\tPIECES\tVALUE\tSTATE")
	for _, i := range all.Items {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%s\t%s\n", i.Name, cmp.Or(i.Status.SKU, "-"), cmp.Or(i.Status.Shelf, "-"),
			cmp.Or(string(i.Status.Phase), "-"), i.Spec.Quantity, money(i.Status.Value), stateOf(i.Status.Conditions))
	}
	return w.Flush()
}

func money(cents int64) string { return fmt.Sprintf("%d.%02d", cents/100, cents%100) }

// stateOf summarizes conditions for users: Ready, or the reason why not, and the other true conditions.
func stateOf(list []metav1.Condition) string {
	var words []string
	for _, c := range list {
		switch {
		case c.Type == conditions.Ready && c.Status == metav1.ConditionTrue:
			words = slices.Insert(words, 0, "Ready")
		case c.Status == metav1.ConditionTrue:
			words = append(words, c.Type+" ("+c.Message+")")
		}
	}
	return cmp.Or(strings.Join(words, ", "), "new")
}

// mostLines is how many lines of one kind are printed.
const mostLines = 10

// write prints what was done, and what was not.
func (d *outcome) write(out io.Writer) error {
	s := d.summary
	var text strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&text, format+"\n", args...) }
	line("\n%s%s.", strings.ToUpper(d.changes[:1]), d.changes[1:])
	var controllers []string
	for _, c := range s.Controllers {
		controllers = append(controllers, fmt.Sprintf("%s %d", c.Name, c.Processed))
	}
	line("%d reconciles, %d of them failed, in %v, at most %d at once (%s).", s.Processed, s.Errors,
		s.Duration.Round(time.Millisecond), s.Peak, strings.Join(controllers, ", "))
	for i, f := range s.Failed {
		if i == mostLines {
			line("… and %d more failed.", len(s.Failed)-i)
			break
		}
		line("Failed: %s %s, %d times: %v", f.Controller, f.Key, f.Attempts, f.Err)
	}
	for i, l := range s.Left {
		if i == mostLines {
			line("… and %d more are left.", s.Pending-i)
			break
		}
		line("Left: %s %s", l.Controller, l.Key)
	}
	for i, k := range s.DueLater {
		if i == mostLines {
			line("… and %d more are due later.", len(s.DueLater)-i)
			break
		}
		line("Due later: %s %s in %v", k.Controller, k.Key, time.Until(k.Due).Round(time.Second))
	}
	_, err := io.WriteString(out, text.String())
	return err
}

// tenants prints whose stock is in the store.
func (o *options) tenants(c *cobra.Command) error {
	objects, err := openObjects(c.Context(), o.dir)
	if err != nil {
		return err
	}
	defer objects.Close()
	found, err := tenantsOf(c.Context(), objects)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "TENANT\tCATEGORIES\tITEMS")
	for _, t := range found {
		fmt.Fprintf(w, "%s\t%d\t%d\n", t.name, t.categories, t.items)
	}
	return w.Flush()
}
