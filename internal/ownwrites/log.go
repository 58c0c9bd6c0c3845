package ownwrites

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/trail"
)

// Log notes what was written to one server, as long as it is in [Books].
//
// Concurrency: all methods may be called from any goroutine; [Log.Connect] before the others but Wrap.
type Log struct {
	base   url.URL
	peer   Peer
	active atomic.Bool
	// begun and ended count requests that write. Both only rise.
	begun, ended atomic.Uint64

	mu sync.Mutex
	// objects are the last write to each object that was not found in the caches so far.
	objects map[objectKey]unseen
}

// Peer is what is known of the server, beside what is written to it.
type Peer struct {
	// Caches are those that are to show what was written.
	Caches *informer.Factory
	// Client asks the server for what an answer did not say.
	Client func() (rest.Interface, error)
	// Timeout bounds such a request; zero: as long as it takes. A server that does not answer in time is not asked again.
	Timeout time.Duration
	// Away says that the server cannot be reached at the moment, so that nobody waits for what it would show. Nil: it always can.
	Away func() bool
}

// New returns a log of what is written to the server that config leads to. What goes elsewhere by clients made of the same config, with
// another host or another path below it, is not noted.
//
// Errors: a config that leads nowhere.
func New(config *rest.Config) (*Log, error) {
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("the address of the server: %w", err)
	}
	base.Path = strings.TrimSuffix(base.Path, "/")
	return &Log{base: *base, objects: map[objectKey]unseen{}}, nil
}

// Connect says what is known of the server.
func (w *Log) Connect(p Peer) { w.peer = p }

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

// Wrap is a [rest.Config]'s wrapper of transports.
func (w *Log) Wrap(next http.RoundTripper) http.RoundTripper {
	return &transport{log: w, next: next}
}

type transport struct {
	log  *Log
	next http.RoundTripper
}

// WrappedRoundTripper is how client-go looks through wrappers.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.next }

// RoundTrip implements [http.RoundTripper].
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	path, ours := t.log.below(r.URL)
	if !ours {
		return t.next.RoundTrip(r)
	}
	watched := trail.From(r.Context())
	active := t.log.active.Load()
	if r.Method == http.MethodGet || !active && watched == nil {
		response, err := t.next.RoundTrip(r)
		if err == nil {
			t.log.contradicted(r, path, response)
		}
		return response, err
	}
	if active {
		t.log.begun.Add(1)
		defer t.log.ended.Add(1)
	}
	response, err := t.next.RoundTrip(r)
	if err == nil && response.StatusCode >= 300 {
		t.log.contradicted(r, path, response)
	}
	if err != nil || response.StatusCode >= 300 {
		return response, err
	}
	written, ok := writtenAt(path)
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
		if !active {
			return response, nil
		}
		t.log.noteCollection(r.URL, written, contentType, body)
		return response, nil
	}
	answer := identify(contentType, body)
	if active {
		t.log.note(r.Method, r.URL.Path, written, answer)
	}
	if watched != nil {
		watched.Note(asWrite(r, written, answer))
	}
	return response, nil
}

// asWrite is a request that was answered, for those who want to know whose change they hear of.
func asWrite(r *http.Request, written informer.Written, answer identified) trail.Write {
	w := trail.Write{Verb: r.Method, Resource: written.Resource.String(), Object: cmp.Or(written.Name, answer.Name), Version: answer.ResourceVersion}
	if r.Method == http.MethodPut || r.Method == http.MethodPost {
		w.Verb = map[string]string{http.MethodPut: "update", http.MethodPost: "create"}[r.Method]
	}
	if written.Namespace != "" {
		w.Object = written.Namespace + "/" + w.Object
	}
	// Without the parameter the server takes the program's name.
	//
	// Source: k8s.io/apiserver v0.37.2 pkg/endpoints/handlers, managerOrUserAgent.
	program, _, _ := strings.Cut(r.UserAgent(), "/")
	w.Manager = cmp.Or(r.URL.Query().Get("fieldManager"), program)
	return w
}

// below is the path of a request below that of the server; ok is false when it goes elsewhere.
func (w *Log) below(u *url.URL) (path string, ok bool) {
	path, ok = strings.CutPrefix(u.Path, w.base.Path)
	return path, ok && u.Host == w.base.Host
}

// note remembers a write until the caches show it.
func (w *Log) note(method, path string, written informer.Written, answer identified) {
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

// behind says whether there are writes that the caches do not show.
func (w *Log) behind(ctx context.Context) (left bool) {
	if w.away() {
		return false
	}
	w.resolveCollections(ctx)
	for key, u := range w.snapshot() {
		if u.ask != "" {
			noted := u
			u = w.resolve(ctx, u)
			w.know(key, noted, u)
		}
		if u.ask != "" || !w.peer.Caches.Reflects(u.Written) {
			left = true
			continue
		}
		w.seen(key, u)
	}
	return left
}

func (w *Log) away() bool { return w.peer.Away != nil && w.peer.Away() }

// giveUp forgets the writes that the caches may never show.
func (w *Log) giveUp() (forgotten []informer.Written) {
	for key, u := range w.snapshot() {
		if u.certain() && w.peer.Caches.WillReflect(u.Written) {
			continue
		}
		forgotten = append(forgotten, u.Written)
		w.seen(key, u)
	}
	return forgotten
}

// forget forgets all.
func (w *Log) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.objects)
}

func (w *Log) snapshot() map[objectKey]unseen {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.objects)
}

// seen forgets a write, unless the object was written again.
func (w *Log) seen(key objectKey, u unseen) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.objects[key] == u {
		delete(w.objects, key)
	}
}

// resolve asks the server at which version the object is now.
func (w *Log) resolve(ctx context.Context, u unseen) unseen {
	body, err := w.get(ctx, "PartialObjectMetadata", func(c rest.Interface) *rest.Request { return c.Get().AbsPath(u.ask) })
	switch {
	case apierrors.IsNotFound(err):
		u.ask = "" // gone: as after a deletion
	case err == nil:
		answer := identify(runtime.ContentTypeJSON, body)
		u.ask, u.UID, u.ResourceVersion = "", answer.UID, answer.ResourceVersion
	case errors.Is(err, errSilent):
		u.ask, u.doubtful = "", true
	}
	return u
}

// errSilent: the server did not answer in time.
var errSilent = errors.New("the server does not answer in time")

// get asks the server for metadata, as kind.
func (w *Log) get(ctx context.Context, kind string, request func(rest.Interface) *rest.Request) ([]byte, error) {
	c, err := w.peer.Client()
	if err != nil {
		return nil, err
	}
	bounded := ctx
	if w.peer.Timeout > 0 {
		var cancel context.CancelFunc
		bounded, cancel = context.WithTimeout(ctx, w.peer.Timeout)
		defer cancel()
	}
	accept := runtime.ContentTypeJSON + ";as=" + kind + ";g=meta.k8s.io;v=v1"
	body, err := request(c).SetHeader("Accept", accept).Do(bounded).Raw()
	if bounded.Err() != nil && ctx.Err() == nil {
		return nil, errSilent
	}
	return body, err
}

// writtenAt is what the path of a request says. Views of an object whose answers are other objects (a Scale) say nothing of
// their resource version that could not be said of the object. What lies below such a view (a proxy, another server's API) is no object
// of this one.
func writtenAt(path string) (informer.Written, bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
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
	return w, len(parts) <= len([]string{"resource", "name", "view"})
}
