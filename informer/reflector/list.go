package reflector

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/informer/deltafifo"
	"github.com/flyball-dev/flyball/informer/internal/connection"
	"github.com/flyball-dev/flyball/informer/internal/objects"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/internal/versions"
)

// list does what listing says.
func (r *Reflector[T]) list(ctx context.Context, s state) state {
	all, later, err := r.pages(ctx, s)
	if err == nil {
		err = r.replace(ctx, s.asks, all)
	}
	if err != nil {
		return r.recoverFrom(ctx, s, connection.Classify(ctx, err), err, facts{
			laterPage: later && !s.asks.has(unpaged), older: !later && !s.asks.has(newest),
			stale: errors.Is(err, connection.ErrStale),
		})
	}
	return state{kind: watching}
}

// begin counts a list that begins, and returns the number of the server's history that it begins in.
func (r *Reflector[T]) begin(ctx context.Context, because connection.Failure) (history int64) {
	r.status.Lists.Add(1)
	history = r.status.Server.Current()
	if r.complete {
		r.status.Relists.Add(1)
		r.status.Reasons[because].Add(1)
		level := 2
		if r.status.ListFails() {
			level = 4 // The failure was logged; that it is tried again is no news.
		}
		klog.FromContext(ctx).V(level).Info("Relisting", "resourceVersion", r.position)
	}
	return history
}

// completeList is all that there is at one version.
type completeList[T any] struct {
	objects    []T
	unreadable []*objects.DecodeError
	version    string
	// history is the number of the server's history that the list began in.
	history int64
}

// replace appends a complete list.
//
// Errors: ErrStale: the list may not be used.
func (r *Reflector[T]) replace(ctx context.Context, asks effect, all completeList[T]) error {
	r.status.Heard()
	back := versions.Earlier(all.version, r.position)
	if back && (!asks.has(newest) || r.complete && !r.ends(ctx, all)) {
		return connection.ErrStale
	}
	accept := deltafifo.AcceptLater
	if r.complete && (back || asks.has(rebuild)) {
		accept = deltafifo.AcceptEarlier
		r.status.Rebuilds.Add(1)
		klog.FromContext(ctx).V(2).Info("Rebuilding the cache", "position", r.position, "resourceVersion", all.version)
	}
	d := deltafifo.Delta[T]{
		Type: deltafifo.Replace, Objects: all.objects, Unreadable: all.unreadable,
		ResourceVersion: all.version, Scope: r.o.Scope, Accept: accept, History: all.history,
	}
	if err := r.fifo.Push(ctx, d); err != nil {
		return err
	}
	r.position, r.seen, r.complete, r.progress = all.version, all.history, true, false
	r.status.Listed(ctx, all.unreadable)
	r.status.Server.Verify(ctx)
	return nil
}

// ends deals with a newest list of an earlier version than the position. It reports whether the list may be used:
// the end of the history is known, or concerns this resource alone.
func (r *Reflector[T]) ends(ctx context.Context, all completeList[T]) bool {
	if all.history != r.seen {
		r.status.Server.Confirm(r.o.Resource)
		return true
	}
	return !r.goneBack(ctx, all.version)
}

// goneBack tells the others that the newest version is before the position, and reports whether they believe it.
func (r *Reflector[T]) goneBack(ctx context.Context, version string) bool {
	believed := r.status.Server.Ended(ctx, r.o.Resource, r.position, version)
	r.status.Take() // It knows.
	return believed
}

// pages fetches all pages of one list. later reports whether one after the first failed.
//
// Source: the versions asked for are those of client-go v0.37.2: any age at first, later nothing older than what
// was seen, the newest after a refusal. A list bounded by a version is not paged, so that the server can answer it
// from its cache.
func (r *Reflector[T]) pages(ctx context.Context, s state) (all completeList[T], later bool, err error) {
	all.history = r.begin(ctx, s.because)
	var asked listwatch.ListOptions
	switch {
	case s.asks.has(newest):
	case r.position == "":
		asked.ResourceVersion = "0"
	default:
		asked.ResourceVersion, asked.Match = r.position, metav1.ResourceVersionMatchNotOlderThan
	}
	if asked.Match == "" && !s.asks.has(unpaged) && r.o.PageSize > 0 {
		asked.Limit = r.o.PageSize
	}
	asked.Unreadable = func(e *objects.DecodeError) { all.unreadable = append(all.unreadable, e) }
	asked.Held = func(o objects.State) bool {
		held, found := r.held(s.asks, o)
		if found {
			all.objects = append(all.objects, held)
		}
		return found
	}
	asked.Exclusive = r.o.Transform != nil
	keep := func(obj T) error {
		obj, err := r.listed(s.asks, obj)
		if err != nil {
			return err
		}
		all.objects = append(all.objects, obj)
		return nil
	}
	for tokens := map[string]bool{}; ; tokens[asked.Continue] = true {
		page, err := r.page(ctx, asked, keep)
		if err != nil {
			return all, asked.Continue != "", err
		}
		if all.version == "" || versions.Earlier(page.ResourceVersion, all.version) {
			// Pages of one version are promised. What a watch tells again is known by its version.
			all.version = page.ResourceVersion
		}
		if page.Continue == "" {
			return all, false, nil
		}
		if tokens[page.Continue] {
			return all, true, &objects.DecodeError{What: "list", Err: errors.New("the server repeats a continue token")}
		}
		asked.Continue, asked.ResourceVersion, asked.Match = page.Continue, "", ""
	}
}

// page fetches one page. A half-open connection would otherwise keep it for ever.
func (r *Reflector[T]) page(ctx context.Context, asked listwatch.ListOptions,
	keep func(T) error,
) (listwatch.ListResult, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, r.o.ListTimeout, connection.ErrSilent)
	defer cancel()
	page, err := r.lw.List(ctx, asked, keep)
	if err != nil && context.Cause(ctx) == connection.ErrSilent { //nolint:errorlint // It is that very value.
		return page, connection.ErrSilent
	}
	return page, err
}

// verify does what verifying says.
func (r *Reflector[T]) verify(ctx context.Context, s state) state {
	// Only the version of the list is looked at.
	one := listwatch.ListOptions{Limit: 1, Unreadable: func(*objects.DecodeError) {}}
	page, err := r.page(ctx, one, func(T) error { return nil })
	if ctx.Err() != nil {
		return s // A reflector that is being stopped must not interrupt the others.
	}
	back := err == nil && versions.Earlier(page.ResourceVersion, r.position)
	if back {
		r.goneBack(ctx, page.ResourceVersion)
		err = connection.ErrStale
	}
	if err != nil {
		return r.recoverFrom(ctx, s, connection.Classify(ctx, err), err, facts{stale: back})
	}
	r.status.Server.Verify(ctx)
	return state{kind: watching}
}
