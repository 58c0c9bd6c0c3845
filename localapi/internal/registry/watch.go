package registry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/flyball-dev/flyball/localapi/internal/watchcache"
)

// WatchOptions are the options of a watch.
type WatchOptions struct {
	Selection
	ResourceVersion string

	// SendInitialEvents, if not nil, decides whether the watch begins with the present state. If it is nil, the watch
	// does so if it starts at no particular version ("" or "0").
	SendInitialEvents *bool

	// AsOf, if not zero, is the past revision whose state the watch begins with, in place of the present.
	AsOf int64
}

// Watcher is a running watch.
type Watcher struct {
	// Initial are the objects to announce as added before any event, as of InitialRevision.
	Initial         []*watchcache.Object
	InitialRevision int64

	resource  *Resource
	selection Selection
	prefix    string
	after     int64 // the client does not get events at or before this revision
	cursor    *watchcache.Cursor
}

// Notice is one event as a watch reports it.
type Notice struct {
	Type   watch.EventType
	Object *watchcache.Object
}

// Watch starts a watch. Errors: Expired, Timeout (version not reached).
func (r *Resource) Watch(ctx context.Context, o WatchOptions) (*Watcher, error) {
	version, err := plainVersion(o.ResourceVersion)
	if err != nil {
		return nil, err
	}
	w := &Watcher{resource: r, selection: o.Selection, prefix: r.key(o.Namespace, "").Prefix()}
	initial := version == 0
	if o.SendInitialEvents != nil {
		initial = *o.SendInitialEvents
		if err := r.reached(ctx, o.ResourceVersion); err != nil && initial {
			return nil, err
		}
	}
	current, _ := r.env.Store.Revision()
	switch {
	case initial:
		from := ListOptions{Selection: o.Selection}
		if o.AsOf > 0 {
			from.ResourceVersion, from.ResourceVersionMatch = strconv.FormatInt(o.AsOf, 10),
				metav1.ResourceVersionMatchExact
		}
		list, err := r.List(ctx, from)
		if err != nil {
			return nil, err
		}
		w.Initial, w.InitialRevision, version = list.Objects, list.Revision, list.Revision
	case version == 0:
		version = current
	}
	w.after = version
	w.cursor, err = r.Objects.Watch(min(version, current))
	if errors.Is(err, watchcache.ErrExpired) {
		return nil, r.expiredWatch(version)
	}
	return w, err
}

func (r *Resource) expiredWatch(version int64) error {
	_, compacted := r.env.Store.Revision()
	return apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", version, compacted))
}

// Next returns the notices that are there, without waiting, and the revision up to which they are complete. If there
// are none, changed is closed when there may be some. Errors: Expired.
func (w *Watcher) Next(ctx context.Context) (notices []Notice, revision int64, changed <-chan struct{}, err error) {
	events, revision, changed, err := w.cursor.Next()
	if errors.Is(err, watchcache.ErrExpired) {
		return nil, revision, nil, w.resource.expiredWatch(revision)
	}
	if err != nil {
		return nil, revision, nil, err
	}
	events, err = w.inVersion(ctx, events)
	if err != nil {
		return nil, revision, nil, err
	}
	for _, e := range events {
		if n, ok := w.notice(e); ok {
			notices = append(notices, n)
		}
	}
	return notices, revision, changed, nil
}

// inVersion returns events with their objects in the version of the resource. What was before matters only to a
// selection that an object can leave.
func (w *Watcher) inVersion(ctx context.Context, events []*watchcache.Event) ([]*watchcache.Event, error) {
	if w.resource.Definition.Convert == nil || len(events) == 0 {
		return events, nil
	}
	var raw []*watchcache.Object
	var seen []*watchcache.Event
	for _, e := range events {
		if e.Revision <= w.after || !strings.HasPrefix(e.Key, w.prefix) {
			continue
		}
		previous := e.Previous
		if w.selection.all() {
			previous = nil
		}
		raw, seen = append(raw, e.Object, previous), append(seen, e)
	}
	all, err := w.resource.inVersion(ctx, raw)
	if err != nil {
		return nil, err
	}
	converted := make([]*watchcache.Event, len(seen))
	for i, e := range seen {
		previous := cmp.Or(all[2*i+1], e.Previous)
		converted[i] = &watchcache.Event{Object: all[2*i], Previous: previous, Deleted: e.Deleted}
	}
	return converted, nil
}

// notice returns what an event means to a client that sees only the selection: objects that enter it are added, and
// objects that leave it are deleted.
func (w *Watcher) notice(e *watchcache.Event) (Notice, bool) {
	if e.Revision <= w.after || !strings.HasPrefix(e.Key, w.prefix) {
		return Notice{}, false
	}
	d := w.resource.Definition
	is := !e.Deleted && w.selection.matches(d, e.Object)
	was := e.Previous != nil && w.selection.matches(d, e.Previous)
	switch {
	case is && was:
		return Notice{watch.Modified, e.Object}, true
	case is:
		return Notice{watch.Added, e.Object}, true
	case was && e.Deleted:
		return Notice{watch.Deleted, e.Object}, true
	case was:
		return Notice{watch.Deleted, w.resource.object(e.Previous.Object, e.Key, e.Revision)}, true
	}
	return Notice{}, false
}
