package writes

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/internal/wire"
)

var (
	// errSilent means that the server did not answer in time, or forbids the list that would answer.
	errSilent   = errors.New("the server does not answer in time")
	errNoServer = errors.New("the record has no client of the server")
	errNoList   = errors.New("the server answers a list with something else")
)

// askAgainAfter is the pause before a server that did not answer is asked about the same write again.
const askAgainAfter = 2 * time.Second

// ask asks the server for the effect of the write. If the name of the object is known, the answer has the object or
// shows that there is none. This ends the doubt, unless the server may still apply a deletion later. If the name is not
// known, ask records the version of a list, and reads have to wait until the cache has reached that version. The same
// list answers for all other writes without a name that are due by now.
func (w *Write) ask(ctx context.Context) error {
	l, start := w.resource, time.Now()
	history, known := l.record.caches().History(), slices.Concat(w.known, l.identities(w.Key()))
	list, err := l.record.fetch(ctx, w)
	if err != nil {
		if ctx.Err() == nil {
			w.update(func(o *outcome) { o.askAfter = time.Now().Add(askAgainAfter) })
		}
		return err
	}
	if w.Key().Name != "" {
		if w.deletesLater(list, known) {
			w.update(func(o *outcome) { o.askAfter = o.lateUntil })
		} else {
			l.settle(w, w.now(list, known))
		}
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for other := range l.inDoubt {
		if other.Key().Name == "" {
			other.shownBy(list.Metadata.ResourceVersion, history, start)
		}
	}
	w.found(list.Items)
	return nil
}

// listing is a list of objects as a server answers it.
type listing struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		ResourceVersion string `json:"resourceVersion"`
	} `json:"metadata"`
	Items []json.RawMessage `json:"items"`
}

// now returns the entry for what the server has under the name of w. If the server has nothing, the entry shows that
// the last known object is gone. known has the states that were known before the server was asked, because an object
// that this process has created since then is not the one that is missing. If there are none, now returns nil.
func (w *Write) now(list listing, known []identity) *Entry {
	if len(list.Items) == 0 {
		return w.lastGone(known)
	}
	body := list.Items[0]
	a := wire.Identify(runtime.ContentTypeJSON, body)
	if a.Kind == "" { // Lists of the built-in API name it once.
		a.APIVersion, a.Kind = list.APIVersion, strings.TrimSuffix(list.Kind, "List")
		head := fmt.Appendf(nil, `{"apiVersion":%q,"kind":%q,`, a.APIVersion, a.Kind)
		body = append(head, bytes.TrimPrefix(body, []byte("{"))...)
	}
	return w.entry(a, body)
}

// deletesLater reports whether w is a deletion that may still remove an object that is created from now on. list is
// what the server has under the name of w.
func (w *Write) deletesLater(list listing, known []identity) bool {
	switch {
	case !w.state().lateUntil.After(time.Now()):
		return false
	case len(list.Items) > 0:
		return !wire.Identify(runtime.ContentTypeJSON, list.Items[0]).Deleting
	}
	existed := slices.ContainsFunc(known, func(i identity) bool { return i.uid != "" })
	return !existed // If it existed, it is gone now, so the deletion is over.
}

// shownBy records the version of a list as the version that caches have to reach, if the list is sure to show the
// effect of w. start is when the list began, and history the number of the server's history at that time.
func (w *Write) shownBy(version string, history int64, start time.Time) {
	w.update(func(o *outcome) {
		if o.inDoubt && o.listVersion == "" && !o.askAfter.After(start) {
			o.listVersion, o.listHistory = version, history
		}
	})
}

// found records the versions of the objects that a deletion of many was to remove. items are those that the server
// still has. The others get no version.
func (w *Write) found(items []json.RawMessage) {
	versions := map[types.UID]string{}
	for _, item := range items {
		a := wire.Identify(runtime.ContentTypeJSON, item)
		versions[a.UID] = a.ResourceVersion
	}
	w.update(func(o *outcome) {
		o.objects = slices.Clone(o.objects)
		for i := range o.objects {
			o.objects[i].ResourceVersion = versions[o.objects[i].UID]
		}
	})
}

// fetch lists the objects that w may have changed: the object with the name of w or, for a deletion of many, the
// metadata of the objects that are left. For a generated name, only the version of the list is needed. fetch sends a
// list rather than a get, because caches need the permission to list anyway.
func (r *Record) fetch(ctx context.Context, w *Write) (list listing, err error) {
	peer := r.peer.Load()
	if peer.server == nil {
		return list, errNoServer
	}
	name, accept := w.Key().Name, runtime.ContentTypeJSON
	if name == "" {
		accept += ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
	}
	request := peer.server.Get().AbsPath(w.collection).MaxRetries(0).SetHeader("Accept", accept)
	switch {
	case w.all:
		for _, selector := range slices.Sorted(maps.Keys(w.selectors)) {
			request.Param(selector, w.selectors.Get(selector))
		}
	case name != "":
		request.Param("fieldSelector", "metadata.name="+name)
	default:
		request.Param("limit", "1")
	}
	bounded := ctx
	if peer.askTimeout > 0 {
		var cancel context.CancelFunc
		bounded, cancel = context.WithTimeout(ctx, peer.askTimeout)
		defer cancel()
	}
	body, err := request.Do(bounded).Raw()
	switch {
	case bounded.Err() != nil && ctx.Err() == nil, apierrors.IsForbidden(err):
		return list, errSilent
	case err != nil:
		return list, err
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return list, err
	}
	if !strings.HasSuffix(list.Kind, "List") {
		return list, errNoList
	}
	return list, nil
}
