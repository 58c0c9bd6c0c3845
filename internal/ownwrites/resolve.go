package ownwrites

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	kjson "sigs.k8s.io/json"
)

var (
	// errSilent: the server did not answer in time, or may not be asked.
	errSilent  = errors.New("the server does not answer in time")
	errUnasked = errors.New("nobody knows how to ask the server")
)

// Resolve asks the server for a list of the objects that w may have changed. The version of that list also bounds the
// effects of all other writes that are due by now.
func (l *Resource) Resolve(ctx context.Context, w *Write) error {
	start, history := time.Now(), l.record.history()
	list, err := l.record.ask(ctx, w)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for other := range l.inDoubt {
		other.shownBy(list.ResourceVersion, history, start)
	}
	w.found(list.ResourceVersion, list.Items)
	return nil
}

// shownBy notes the version of a list if the list is sure to show the effect of w. The list was asked for at start, in
// that history of the server.
func (w *Write) shownBy(version string, history int64, start time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if o := &w.outcome; o.InDoubt && o.Until == "" && !o.After.After(start) {
		o.Until, o.history = version, history
	}
}

// found notes which of the objects still exist, and at which version. An object that exists has the effect at its own
// version. A cache may reach that long before the version of the list, which may be that of another resource's write:
// no event tells it then, only the next bookmark. For an object that is gone, the version of the list counts.
func (w *Write) found(list string, items []metav1.PartialObjectMetadata) {
	object := w.resource.written(w.Key())
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.all {
		for _, item := range items {
			object.UID, object.ResourceVersion = item.UID, item.ResourceVersion
		}
		if w.outcome.Until == list && len(items) == 1 && object.Name != "" {
			w.outcome.Until = object.ResourceVersion
		}
		w.outcome.objects = append(w.outcome.objects[:0:0], object)
		return
	}
	versions := map[types.UID]string{}
	for _, item := range items {
		versions[item.UID] = item.ResourceVersion
	}
	objects := slices.Clone(w.outcome.objects)
	for i := range objects {
		objects[i].ResourceVersion = versions[objects[i].UID]
	}
	w.outcome.objects = objects
}

// ask lists the metadata of the objects that w may have changed: the object; for a deletion of many, those that are
// left. For a generated name it needs only the version of the list.
func (r *Record) ask(ctx context.Context, w *Write) (list metav1.PartialObjectMetadataList, err error) {
	peer := r.peer.Load()
	if peer.Server == nil {
		return list, errUnasked
	}
	name := w.Key().Name
	request := peer.Server.Get().AbsPath(w.collection).MaxRetries(0).
		SetHeader("Accept", runtime.ContentTypeJSON+";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1")
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
	if peer.AskTimeout > 0 {
		var cancel context.CancelFunc
		bounded, cancel = context.WithTimeout(ctx, peer.AskTimeout)
		defer cancel()
	}
	body, err := request.Do(bounded).Raw()
	switch {
	case bounded.Err() != nil && ctx.Err() == nil, apierrors.IsForbidden(err):
		return list, errSilent
	case err != nil:
		return list, err
	}
	err = kjson.UnmarshalCaseSensitivePreserveInts(body, &list)
	return list, err
}
