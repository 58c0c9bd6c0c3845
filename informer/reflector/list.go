package reflector

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/informer/deltafifo"
	"github.com/flyball-dev/flyball/informer/internal/connection"
	"github.com/flyball-dev/flyball/informer/internal/identity"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/informer/objects"
	"github.com/flyball-dev/flyball/internal/versions"
)

// list runs the state listing: it fetches pages until the list is complete, and appends them.
func (r *Reflector[T]) list(ctx context.Context, s state) state {
	all, laterPageFailed, err := r.pages(ctx, s)
	if err == nil {
		err = r.replace(ctx, s.list, all)
	}
	if err != nil {
		return r.recoverFrom(ctx, s, ending{connection.Classify(ctx, err), err}, facts{
			laterPage: laterPageFailed && !s.list.has(unpaged), older: !laterPageFailed && !s.list.has(newest),
			stale: errors.Is(err, connection.ErrAhead),
		})
	}
	return state{kind: watching}
}

// completeList holds all objects at one version.
type completeList[T any] struct {
	objects    []T
	unreadable []*objects.DecodeError
	version    string
	// history is the number of the server's history when the list began.
	history int64
}

// begin counts a list and logs it if it is a relist. It returns the number of the server's current history.
func (r *Reflector[T]) begin(ctx context.Context, because connection.Failure) (history int64) {
	r.status.Lists.Add(1)
	history = r.status.Server.Current()
	if r.listed {
		r.status.Relists.Add(1)
		r.status.Reasons[because].Add(1)
		level := 2
		if r.status.ListFails() {
			level = 4 // The failure is in the log already.
		}
		klog.FromContext(ctx).V(level).Info("Relisting", "resourceVersion", r.position)
	}
	return history
}

// pages fetches all pages of one list. laterPageFailed reports whether the error came after the first page.
//
// Source: client-go v0.37.2 chooses the same versions: the first list may be of any age; later lists must not be older
// than what was seen; after a refusal, the newest state is asked for. A list bounded by a version is not paged, so that
// the server can answer it from its cache.
func (r *Reflector[T]) pages(ctx context.Context, s state) (all completeList[T], laterPageFailed bool, err error) {
	all.history = r.begin(ctx, s.because)
	var o listwatch.ListOptions
	switch {
	case s.list.has(newest):
	case r.position == "":
		o.ResourceVersion = "0"
	default:
		o.ResourceVersion, o.Match = r.position, metav1.ResourceVersionMatchNotOlderThan
	}
	if o.Match == "" && !s.list.has(unpaged) && r.o.PageSize > 0 {
		o.Limit = r.o.PageSize
	}
	o.Unreadable = func(e *objects.DecodeError) { all.unreadable = append(all.unreadable, e) }
	o.Held = func(os objects.State) bool {
		held, found := r.held(s.list, os)
		if found {
			all.objects = append(all.objects, held)
		}
		return found
	}
	o.Exclusive = r.o.Transform != nil
	add := func(obj T) error {
		obj, err := r.keep(s.list, obj)
		if err != nil {
			return err
		}
		all.objects = append(all.objects, obj)
		return nil
	}
	for tokens := map[string]bool{}; ; tokens[o.Continue] = true {
		page, err := r.page(ctx, o, add)
		if err != nil {
			return all, o.Continue != "", err
		}
		if all.version == "" || versions.Earlier(page.ResourceVersion, all.version) {
			// All pages should have one version. If they do not, the watch begins at the earliest version, and the
			// cache ignores the states that it then gets twice.
			all.version = page.ResourceVersion
		}
		if page.Continue == "" {
			return all, false, nil
		}
		if tokens[page.Continue] {
			return all, true, &objects.DecodeError{What: "list", Err: errors.New("the server repeats a continue token")}
		}
		o.Continue, o.ResourceVersion, o.Match = page.Continue, "", ""
	}
}

// page fetches one page. The timeout ends a half-open connection, which would otherwise block for ever.
func (r *Reflector[T]) page(ctx context.Context, o listwatch.ListOptions,
	add func(T) error,
) (listwatch.ListResult, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, r.o.ListTimeout, connection.ErrSilent)
	defer cancel()
	page, err := r.lw.List(ctx, o, add)
	if err != nil && context.Cause(ctx) == connection.ErrSilent { //nolint:errorlint // The cause is this value itself.
		return page, connection.ErrSilent
	}
	return page, err
}

// keep returns what to keep for an object of a list.
func (r *Reflector[T]) keep(how effect, obj T) (T, error) {
	if identity.Missing(obj) {
		return obj, connection.ErrNil
	}
	if r.position != "" { // Before the first list the cache is empty.
		if held, found := r.held(how, identity.State(obj)); found {
			return held, nil
		}
	}
	return r.transform(obj)
}

// held returns the cached object if it is in the state s. It finds nothing for a list of the newest state, which may
// follow a restore from backup: the server may then have given the same version to two different states.
func (r *Reflector[T]) held(how effect, s objects.State) (obj T, found bool) {
	if r.o.Cache == nil || how.has(newest) {
		return obj, false
	}
	return r.o.Cache.Held(s)
}

// replace appends a complete list.
//
// Errors: connection.ErrAhead if the list is older than the position and must not be used.
func (r *Reflector[T]) replace(ctx context.Context, how effect, all completeList[T]) error {
	r.status.Received()
	back := versions.Earlier(all.version, r.position)
	if back && (!how.has(newest) || r.listed && !r.mayGoBack(ctx, all)) {
		return connection.ErrAhead
	}
	accept := deltafifo.AcceptLater
	if r.listed && (back || how.has(rebuild)) {
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
	r.position, r.history, r.listed, r.progress = all.version, all.history, true, false
	r.status.Listed(ctx, all.unreadable)
	_ = r.status.Server.Verify(ctx) // A failure shows nothing, and the next informer asks again.
	return nil
}

// mayGoBack reports whether a list of the newest state that is older than the position may be used. It may if the
// server is known to have begun another history, or if only this resource is affected. Otherwise all informers,
// including this one, have to list anew.
func (r *Reflector[T]) mayGoBack(ctx context.Context, all completeList[T]) bool {
	if all.history != r.history {
		r.status.Server.Confirm(r.o.Resource)
		return true
	}
	return !r.reportHistoryEnd(ctx, all.version)
}

// reportHistoryEnd reports to all informers of the server that the server's newest version is older than the position.
// It returns true if they list anew.
func (r *Reflector[T]) reportHistoryEnd(ctx context.Context, version string) (relistAll bool) {
	relistAll = r.status.Server.Ended(ctx, r.o.Resource, r.position, version)
	r.status.TakeInterrupt() // This reflector knows already.
	return relistAll
}

// verify runs the state verifying.
func (r *Reflector[T]) verify(ctx context.Context, s state) state {
	// Only the version of the list matters.
	o := listwatch.ListOptions{Limit: 1, Unreadable: func(*objects.DecodeError) {}}
	page, err := r.page(ctx, o, func(T) error { return nil })
	if ctx.Err() != nil {
		return s // A reflector that is being stopped must not interrupt the others.
	}
	back := err == nil && versions.Earlier(page.ResourceVersion, r.position)
	if back {
		r.reportHistoryEnd(ctx, page.ResourceVersion)
		err = connection.ErrAhead
	}
	if err != nil {
		return r.recoverFrom(ctx, s, ending{connection.Classify(ctx, err), err}, facts{stale: back})
	}
	_ = r.status.Server.Verify(ctx) // A failure shows nothing, and the next informer asks again.
	return state{kind: watching}
}
