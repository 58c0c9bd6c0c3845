package ownwrites

import (
	"context"
	"errors"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/informer"
)

// collection are objects that one request deleted together. The answer to it lists them as they were before: whether each is gone,
// or stays marked until its finalizers are, is what the server is asked for, once, if the caches do not show them gone.
type collection struct {
	path  string
	query string // the selectors of the request
	// silent: the server does not say which of them are still there.
	silent bool
}

// noteCollection remembers the objects that the answer to a deletion lists.
//
// A deletion that failed is not looked at, although it may have deleted some: who sent it has an error to deal with, and sends it
// again.
func (w *Log) noteCollection(of *url.URL, written informer.Written, contentType string, body []byte) {
	c := &collection{path: of.Path, query: selectors(of.Query()).Encode()}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, item := range identifyItems(contentType, body) {
		u := unseen{Written: written, among: c}
		u.Name, u.UID = item.Name, item.UID
		w.objects[objectKey{u.Resource, u.Namespace, u.Name}] = u
	}
}

func selectors(query url.Values) url.Values {
	kept := url.Values{}
	for _, name := range []string{"labelSelector", "fieldSelector"} {
		if query.Has(name) {
			kept.Set(name, query.Get(name))
		}
	}
	return kept
}

// resolveCollections finds out what became of the objects that were deleted together and that the caches still show.
func (w *Log) resolveCollections(ctx context.Context) {
	asked := map[*collection]map[types.UID]string{} // nil where the server did not answer: the next look asks again
	noted := w.snapshot()
	for _, u := range noted {
		if u.among == nil || w.peer.Caches.Reflects(u.Written) {
			continue
		}
		if _, ok := asked[u.among]; !ok {
			asked[u.among] = w.remaining(ctx, u.among)
		}
	}
	for key, u := range noted {
		remaining := asked[u.among]
		if u.among == nil || remaining == nil {
			continue
		}
		known := u
		known.among, known.ResourceVersion, known.doubtful = nil, remaining[u.UID], u.among.silent
		w.know(key, u, known)
	}
}

// remaining are the resource versions of those that are still there; nil if the server does not say.
func (w *Log) remaining(ctx context.Context, c *collection) map[types.UID]string {
	body, err := w.get(ctx, "PartialObjectMetadataList", func(client rest.Interface) *rest.Request {
		return client.Get().RequestURI(c.path + "?" + c.query)
	})
	versions := map[types.UID]string{}
	switch {
	case apierrors.IsForbidden(err), errors.Is(err, errSilent):
		c.silent = true
		return versions // all of them are waited for as if they were gone
	case err != nil:
		return nil
	}
	for _, item := range identifyItems(runtime.ContentTypeJSON, body) {
		versions[item.UID] = item.ResourceVersion
	}
	return versions
}

// know puts what is known about a write in the place of what was, unless the object was written again.
func (w *Log) know(key objectKey, before, now unseen) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.objects[key] == before {
		w.objects[key] = now
	}
}
