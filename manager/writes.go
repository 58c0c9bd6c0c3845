package manager

import (
	"bytes"
	"context"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/informer"
)

// writes notes what this process wrote and its caches may not show yet. It does so only while somebody asks.
type writes struct {
	active atomic.Bool
	// begun and ended count requests that write. Both only rise.
	begun, ended atomic.Uint64

	mu sync.Mutex
	// objects are the last write to each object that was not found in the caches so far.
	objects map[objectKey]unseen
}

// unseen is a write that the caches do not show.
type unseen struct {
	informer.Written
	ask   string      // where the server tells the version, if the answer did not
	among *collection // those that were deleted together, until it is known what became of each; nil: this one alone
	// doubtful: it may be gone or not, and nobody says.
	doubtful bool
}

type objectKey struct {
	resource        schema.GroupResource
	namespace, name string
}

// wrap is a [rest.Config]'s wrapper of transports.
func (w *writes) wrap(next http.RoundTripper) http.RoundTripper {
	return &writesTransport{writes: w, next: next}
}

type writesTransport struct {
	writes *writes
	next   http.RoundTripper
}

// WrappedRoundTripper is how client-go looks through wrappers.
func (t *writesTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

// RoundTrip implements [http.RoundTripper].
func (t *writesTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet || !t.writes.active.Load() {
		return t.next.RoundTrip(r)
	}
	t.writes.begun.Add(1)
	defer t.writes.ended.Add(1)
	response, err := t.next.RoundTrip(r)
	if err != nil || response.StatusCode >= 300 {
		return response, err
	}
	written, ok := writtenAt(r.URL.Path)
	if !ok || r.URL.Query().Has("dryRun") {
		return response, nil
	}
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	contentType := response.Header.Get("Content-Type")
	if r.Method == http.MethodDelete && written.Name == "" {
		t.writes.noteCollection(r.URL, written, contentType, body)
		return response, nil
	}
	t.writes.note(r.Method, r.URL.Path, written, identify(contentType, body))
	return response, nil
}

// note remembers a write until the caches show it.
func (w *writes) note(method, path string, written informer.Written, answer identified) {
	if written.Name == "" {
		written.Name = answer.Name
	}
	if written.Name == "" {
		return // a review: nothing that could be looked for
	}
	written.UID = answer.UID
	gone := answer.gone() || method == http.MethodDelete && answer.DeletionTimestamp == nil
	if !gone { // else the answer is the last state, which the caches may have shown for long
		written.ResourceVersion = answer.ResourceVersion
	}
	u := unseen{Written: written}
	if written.ResourceVersion == "" && !gone {
		before, after, _ := strings.Cut(path, "/"+written.Resource.Resource+"/")
		name, _, _ := strings.Cut(after, "/")
		u.ask = before + "/" + written.Resource.Resource + "/" + name // a binding, an eviction: the answer does not say
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.objects[objectKey{written.Resource, written.Namespace, written.Name}] = u
}

// certain says whether it is known what the caches have to come to.
func (u unseen) certain() bool { return u.ask == "" && u.among == nil && !u.doubtful }

// behind returns the writes that the caches do not show.
func (w *writes) behind(ctx context.Context, c rest.Interface, f *informer.Factory) (left []informer.Written) {
	w.resolveCollections(ctx, c, f)
	for key, u := range w.snapshot() {
		if u.ask != "" {
			noted := u
			u = u.resolve(ctx, c)
			w.know(key, noted, u)
		}
		if u.ask != "" || !f.Reflects(u.Written) {
			left = append(left, u.Written)
			continue
		}
		w.seen(key, u)
	}
	return left
}

func (w *writes) snapshot() map[objectKey]unseen {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.objects)
}

// seen forgets a write, unless the object was written again.
func (w *writes) seen(key objectKey, u unseen) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.objects[key] == u {
		delete(w.objects, key)
	}
}

// resolve asks the server at which version the object is now.
func (u unseen) resolve(ctx context.Context, c rest.Interface) unseen {
	const metadata = runtime.ContentTypeJSON + ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	body, err := c.Get().AbsPath(u.ask).SetHeader("Accept", metadata).Do(ctx).Raw()
	switch {
	case apierrors.IsNotFound(err):
		u.ask = "" // gone: as after a deletion
	case err == nil:
		answer := identify(runtime.ContentTypeJSON, body)
		u.ask, u.UID, u.ResourceVersion = "", answer.UID, answer.ResourceVersion
	}
	return u
}

// writtenAt is what the path of a request says. Views of an object whose answers are other objects (a Scale) say nothing of
// their resource version that could not be said of the object.
func writtenAt(path string) (informer.Written, bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	if i := slices.IndexFunc(parts, func(p string) bool { return p == "api" || p == "apis" }); i >= 0 {
		parts = parts[i:]
	}
	var w informer.Written
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) >= 4 && parts[0] == "apis":
		w.Resource.Group = parts[1]
		parts = parts[3:]
	default:
		return w, false
	}
	if len(parts) >= 3 && parts[0] == "namespaces" && parts[2] != "status" && parts[2] != "finalize" {
		w.Namespace = parts[1]
		parts = parts[2:]
	}
	w.Resource.Resource = parts[0]
	if len(parts) > 1 {
		w.Name = parts[1]
	}
	return w, true
}
