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
)

// list is stateList.
func (r *Reflector[T]) list(ctx context.Context) state {
	r.listing(ctx)
	all, asked, err := r.pages(ctx)
	if err != nil {
		return r.listFailed(ctx, asked, err)
	}
	if !r.replace(ctx, all) {
		return stateList
	}
	return stateWatch
}

// listing counts a list that begins.
func (r *Reflector[T]) listing(ctx context.Context) {
	r.status.Lists.Add(1)
	r.listingIn = r.status.Server.Current()
	if r.complete {
		r.status.Relists.Add(1)
		r.status.Reasons[r.because].Add(1)
		level := 2
		if r.status.ListFails() {
			level = 4 // The failure was logged; that it is tried again is no news.
		}
		klog.FromContext(ctx).V(level).Info("Listing again", "resourceVersion", r.position)
	}
}

// completeList is all that there is at one version.
type completeList[T any] struct {
	objects    []T
	unreadable []*objects.DecodeError
	version    string
}

// replace appends a complete list. It returns false when the list may not be used, and another has to be asked for.
func (r *Reflector[T]) replace(ctx context.Context, all completeList[T]) bool {
	r.status.Heard()
	back := objects.Older(all.version, r.position)
	if back && !r.newest {
		r.newest, r.because = true, connection.Ahead // A replica that lags answered although it was told not to.
		return false
	}
	accept := deltafifo.AcceptLater
	if r.complete && (back || r.rebuild) {
		if back && !r.ends(ctx, all.version) {
			r.because = connection.Ahead
			return false // Listed again: what this process wrote before all were told is in that list.
		}
		accept = deltafifo.AcceptEarlier
		r.status.Rebuilds.Add(1)
		klog.FromContext(ctx).V(2).Info("Rebuilding the cache", "position", r.position, "resourceVersion", all.version)
	}
	d := deltafifo.Delta[T]{
		Type: deltafifo.Replace, Objects: all.objects, Unreadable: all.unreadable,
		ResourceVersion: all.version, Scope: r.o.Scope, Accept: accept, History: r.listingIn,
	}
	if r.fifo.Push(ctx, d) != nil {
		return false
	}
	r.position, r.complete, r.newest, r.unpaged, r.progress, r.rebuild = all.version, true, false, false, false, false
	r.seen = r.listingIn
	r.status.Listed(ctx, all.unreadable)
	r.status.Server.Verify(ctx)
	return true
}

// ends deals with a newest list of an earlier version than the position. It reports whether the list may be used:
// the end of the history is known, or concerns this resource alone.
func (r *Reflector[T]) ends(ctx context.Context, version string) bool {
	if r.listingIn != r.seen {
		r.status.Server.Confirm(r.o.Resource)
		return true
	}
	return !r.goneBack(ctx, version)
}

// goneBack tells the others that the newest version is before the position, and reports whether they believe it.
// The next list is a rebuild.
func (r *Reflector[T]) goneBack(ctx context.Context, version string) bool {
	believed := r.status.Server.Ended(ctx, r.o.Resource, r.position, version)
	r.status.Take() // It knows.
	r.newest, r.rebuild = true, true
	return believed
}

// pages fetches all pages of one list. asked is the request that failed.
//
// Source: the versions asked for are those of client-go v0.37.2: any age at first, later nothing older than what
// was seen, the newest after a refusal. A list bounded by a version is not paged, so that the server can answer it
// from its cache.
func (r *Reflector[T]) pages(ctx context.Context) (all completeList[T], asked listwatch.ListOptions, err error) {
	switch {
	case r.newest:
	case r.position == "":
		asked.ResourceVersion = "0"
	default:
		asked.ResourceVersion, asked.Match = r.position, metav1.ResourceVersionMatchNotOlderThan
	}
	if asked.Match == "" && !r.unpaged && r.o.PageSize > 0 {
		asked.Limit = r.o.PageSize
	}
	asked.Unreadable = func(e *objects.DecodeError) { all.unreadable = append(all.unreadable, e) }
	asked.Held = func(s objects.State) bool {
		held, found := r.held(s)
		if found {
			all.objects = append(all.objects, held)
		}
		return found
	}
	asked.Exclusive = r.o.Transform != nil
	keep := func(obj T) error {
		obj, err := r.listed(obj)
		if err != nil {
			return err
		}
		all.objects = append(all.objects, obj)
		return nil
	}
	for tokens := map[string]bool{}; ; tokens[asked.Continue] = true {
		page, err := r.page(ctx, asked, keep)
		if err != nil {
			return all, asked, err
		}
		if all.version == "" || objects.Older(page.ResourceVersion, all.version) {
			// Pages of one version are promised. What a watch tells again is known by its version.
			all.version = page.ResourceVersion
		}
		if page.Continue == "" {
			return all, asked, nil
		}
		if tokens[page.Continue] {
			return all, asked,
				&objects.DecodeError{What: "list", Err: errors.New("the server repeats a continue token")}
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

// verify is stateVerify.
func (r *Reflector[T]) verify(ctx context.Context) state {
	// Only the version of the list is looked at.
	one := listwatch.ListOptions{Limit: 1, Unreadable: func(*objects.DecodeError) {}}
	newest, err := r.page(ctx, one, func(T) error { return nil })
	if ctx.Err() != nil {
		return stateVerify
	}
	if err != nil {
		r.status.Server.Lost()
		r.status.Failed(ctx, "list", err)
		then := stateVerify
		if f := connection.Classify(ctx, err); f == connection.Refused || f == connection.Malformed {
			then = stateWatch // Who may not list may still watch.
		}
		return r.pauseThen(connection.RetryAfter(err), then)
	}
	if objects.Older(newest.ResourceVersion, r.position) {
		r.goneBack(ctx, newest.ResourceVersion)
		return r.relistFor(connection.Ahead)
	}
	r.status.Server.Verify(ctx)
	return stateWatch
}

// listFailed decides what comes after a list that failed.
func (r *Reflector[T]) listFailed(ctx context.Context, asked listwatch.ListOptions, err error) state {
	if ctx.Err() != nil {
		return stateList
	}
	f := connection.Classify(ctx, err)
	r.because = f
	switch {
	case f == connection.Expired && asked.Continue != "" && !r.unpaged:
		// Paging took longer than the server keeps history. All at once does not need any.
		r.newest, r.unpaged = true, true
		return stateList
	case (f == connection.Expired || f == connection.Ahead) && asked.ResourceVersion != "":
		r.newest = true
		return stateList
	}
	if f == connection.Refused {
		r.unstreamed = false // Then it was not the streaming that was refused.
	}
	r.status.Failed(ctx, "list", err)
	return r.pauseThen(connection.RetryAfter(err), stateList)
}
