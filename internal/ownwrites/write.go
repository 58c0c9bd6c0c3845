package ownwrites

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/internal/cachecheck"
	"github.com/flyball-dev/flyball/internal/ownwrites/wire"
	"github.com/flyball-dev/flyball/internal/versions"
)

// Intent is what our client knows about a write and the request does not say.
type Intent struct {
	// Name is the name of the object to create.
	Name string
	// Deleted is the state of the object to delete, as the caller knows it.
	Deleted Identity
	// Precondition is the only UID that may be deleted; "" if any may.
	Precondition types.UID
	// Decode decodes the answer, so that it is decoded once. It reports false for an answer of another kind.
	Decode func(contentType string, body []byte) (wire.Answer, bool)
}

// Identity is one state of one object.
type Identity struct {
	UID     types.UID
	Version string
}

type intentKey struct{}

// WithIntent returns a context for one request of our client.
func WithIntent(ctx context.Context, i *Intent) context.Context {
	return context.WithValue(ctx, intentKey{}, i)
}

// Write is a request that changes something, from before it is sent until its effect is known.
type Write struct {
	resource *Resource
	// Owner is the owner of the request's context, such as a reconcile.
	Owner any
	// Deletes reports whether the write can only remove the object, not change it.
	Deletes bool

	key         ObjectKey
	waker       Waker
	subresource string
	decode      func(contentType string, body []byte) (wire.Answer, bool)
	// sent returns the body of the request: an object, a patch or the options of a deletion; nil if it is another one.
	sent        func() (io.ReadCloser, error)
	contentType string
	method      string
	// all reports whether it concerns every object of the collection that the selectors select.
	all        bool
	collection string
	selectors  url.Values
	// known are the states in which this process has seen the object to delete.
	known        []Identity
	precondition types.UID
	// done is closed when the request is over. Nothing is sent.
	done chan struct{}
	// abandoned reports that nobody waits for it. It is guarded by the resource's mu.
	abandoned bool

	mu sync.Mutex
	// outcome is guarded by mu.
	outcome Outcome
}

// Outcome is what is known of a write whose answer did not tell its effect.
type Outcome struct {
	// InDoubt reports whether the request is over, but not its effect known.
	InDoubt bool
	// Lost is why the effect is unknown; nil while the write is under way, and when an answer came that did not tell
	// it.
	Lost error
	// After is when the server may be asked about the write. If the object's name is not known, a list that begins then
	// or later is sure to show the effect.
	After time.Time
	// late is until when the server may apply a deletion of whatever has the name; zero for other writes.
	late time.Time
	// Until is the version of such a list, in the server's history of that number; "" before there is one.
	Until   string
	history int64
	// name is the object's name when only the request's body has it.
	name string
	// objects are what caches show once they have the effect. silent reports that the server does not tell it.
	objects []cachecheck.Written
	silent  bool
}

// begin notes a write before it is sent.
func (r *Record) begin(request *http.Request, to wire.Place) *Write {
	ctx := request.Context()
	w := &Write{
		resource: r.Of(to.Resource), key: to.Key, Owner: OwnerFrom(ctx), waker: WakerFrom(ctx),
		subresource: to.Subresource,
		Deletes:     request.Method == http.MethodDelete, method: request.Method, collection: to.Collection,
		done: make(chan struct{}),
	}
	w.all = w.Deletes && to.Key.Name == ""
	if w.all {
		w.selectors = url.Values{}
		for _, name := range []string{"labelSelector", "fieldSelector"} {
			if value := request.URL.Query().Get(name); value != "" {
				w.selectors.Set(name, value)
			}
		}
	}
	if to.Subresource == "" || w.Patches() {
		w.sent, w.contentType = request.GetBody, request.Header.Get("Content-Type")
	}
	if i, ours := ctx.Value(intentKey{}).(*Intent); ours {
		w.decode, w.precondition = i.Decode, i.Precondition
		if w.key.Name == "" && !w.all {
			w.key.Name = i.Name
		}
		w.known = append(w.known, i.Deleted)
	}
	if w.Deletes && !w.all {
		w.known = append(w.known, w.resource.identities(w.key)...)
	}
	w.resource.open(w)
	return w
}

func (w *Write) read(contentType string, body []byte) wire.Answer {
	if w.decode != nil {
		if a, ok := w.decode(contentType, body); ok {
			return a
		}
	}
	return wire.Identify(contentType, body)
}

// effect returns the effect that the answer tells; nil means none. told is false when the answer does not tell it.
func (w *Write) effect(a wire.Answer, body []byte) (e *Entry, told bool) {
	key := ObjectKey{Namespace: a.Namespace, Name: a.Name}
	switch {
	case w.all:
		w.deleted(wire.Items(a.ContentType, body))
		return nil, false
	case a.Kind == "Status" && w.Deletes && a.UID != "":
		return w.vanished(a.UID, w.known), true
	case a.Kind == "Status":
		return nil, false
	case w.Deletes && (!a.Deleting || a.Gone()):
		return w.vanished(a.UID, w.known), true
	case a.Gone():
		gone := w.vanished(a.UID, w.known)
		gone.Version = versions.Later(gone.Version, a.ResourceVersion)
		return gone, true
	case a.ResourceVersion == "":
		return nil, true // A subresource that changes nothing, such as a token or a review.
	case w.subresource != "" && key != w.key:
		return nil, false
	}
	return w.entry(a, body), true
}

// entry returns the entry of the object in an answer.
func (w *Write) entry(a wire.Answer, body []byte) *Entry {
	return &Entry{
		Key: ObjectKey{Namespace: a.Namespace, Name: a.Name}, uid: a.UID, Version: a.ResourceVersion, GVK: a.GVK(),
		Body: body, ContentType: a.ContentType, owner: w.Owner, at: time.Now(),
	}
}

// refused returns the effect of a refused write: a refused deletion can show which object is gone.
func (w *Write) refused(code int, body []byte) *Entry {
	switch {
	case !w.Deletes || w.all:
	case code == http.StatusNotFound:
		return w.lastVanished(w.known)
	case code == http.StatusConflict && w.precondition != "" && bytes.Contains(body, []byte(preconditionUID)):
		return w.vanished(w.precondition, w.known)
	}
	return nil
}

// lastVanished returns the entry for a server that has no object of that name, of which this process has seen the known
// states; nil if it has seen none.
func (w *Write) lastVanished(known []Identity) *Entry {
	for _, last := range slices.Backward(known) { // The last comes from a cache.
		if last.UID != "" {
			return w.vanished(last.UID, known)
		}
	}
	return nil
}

// vanished returns the entry of the deleted object with that UID, of which the known states were seen.
func (w *Write) vanished(uid types.UID, known []Identity) *Entry {
	e := &Entry{Key: w.Key(), uid: uid, Gone: true, owner: w.Owner, at: time.Now()}
	for _, state := range known {
		if state.UID == uid && state.Version != "" {
			e.Version = versions.Later(e.Version, state.Version)
		}
	}
	return e
}

// deleted notes the objects that the answer to a deletion of many lists, as they were before it.
func (w *Write) deleted(items []wire.Answer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, item := range items {
		w.outcome.objects = append(w.outcome.objects, cachecheck.Written{
			Resource: w.resource.Name, Namespace: item.Namespace, Name: item.Name, UID: item.UID,
		})
	}
}

// lost notes that the effect of a write is unknown. answered reports whether the server is done with it. If not, it may
// still apply the write until its request timeout. That is waited for only if the write [Write.harmsLate]: otherwise
// one look at the server is enough.
func (w *Write) lost(why error, answered bool) {
	contentType, body := w.Sent()
	if w.key.Name == "" && body != nil { // A clientset sent it: only the body has the object's name.
		w.mu.Lock()
		w.outcome.name = wire.Identify(contentType, body).Name
		w.mu.Unlock()
	}
	after := time.Now()
	switch late := after.Add(w.resource.record.peer.Load().RequestTimeout); {
	case answered || !w.harmsLate(contentType, body):
	case w.Deletes && !w.all: // One look at the server may show that it is over.
		w.mu.Lock()
		w.outcome.late = late
		w.mu.Unlock()
	default:
		after = late
	}
	w.doubt(why, after)
}

// harmsLate reports whether the write does harm if the server applies it late, after this process has looked and
// written again. A creation with a generated name makes one object more, an update or a patch without a precondition
// undoes what was written since, and a deletion without one deletes what was created since. Other writes are refused
// then, or have the effect that was wanted, and the reconcile gets an event.
func (w *Write) harmsLate(contentType string, body []byte) bool {
	switch {
	case w.Deletes:
		return w.all || !wire.Preconditioned(contentType, body)
	case w.Patches(), w.method == http.MethodPut && body != nil:
		return !wire.Conditional(contentType, body)
	}
	return w.Key().Name == ""
}

// Patches reports whether the write is a patch, of which Sent returns the patch.
func (w *Write) Patches() bool { return w.method == http.MethodPatch }

// Sent returns the object, the patch or the options that the request sent; nil if they are not known.
func (w *Write) Sent() (contentType string, body []byte) {
	if w.sent == nil {
		return "", nil
	}
	reader, err := w.sent()
	if err != nil {
		return "", nil
	}
	defer reader.Close()
	if body, err = io.ReadAll(reader); err != nil {
		return "", nil
	}
	return w.contentType, body
}

// Key returns the object's key. Its name is empty for a generated name, and for a deletion of many objects.
func (w *Write) Key() ObjectKey {
	key := w.key
	if key.Name == "" {
		key.Name = w.State().name
	}
	return key
}

// doubt notes that the request is over and its effect not known. after is the After of the [Outcome].
func (w *Write) doubt(lost error, after time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.outcome.InDoubt, w.outcome.Lost, w.outcome.After = true, lost, after
	close(w.done)
}

// Done is closed when the request is over.
func (w *Write) Done() <-chan struct{} { return w.done }

// State returns what is known of the effect.
func (w *Write) State() Outcome {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.outcome
}

// Concerns reports whether a cache has to wait for w before owner can read it in a namespace ("" means all). The reader
// finds out what w could change there. A nil owner is a reader outside of a reconcile: to it, a write whose answer was
// lost is like a write of another process.
func (w *Write) Concerns(c Cache, namespace string, owner any) bool {
	if !c.Follows(w.key.Namespace) || (namespace != "" && w.key.Namespace != "" && namespace != w.key.Namespace) {
		return false
	}
	o := w.State()
	if owner == nil {
		return o.InDoubt && o.Lost == nil
	}
	// A write of another owner that is still under way is concurrent: the read may come before it as well as after.
	return o.InDoubt || w.Owner == owner
}

// mayChange reports whether w may change the object of that key, or any object if the key has no name. Of a write
// whose object's name the record does not know, it reports true.
func (w *Write) mayChange(key ObjectKey) bool {
	return key.Name == "" || w.key.Name == "" || w.key == key
}

// All reports whether w deletes a whole collection.
func (w *Write) All() bool { return w.all }

// settled reports whether all caches show the write's effect.
func (w *Write) settled(caches []Cache) bool {
	o := w.State()
	return o.Until != "" && !slices.ContainsFunc(caches, func(c Cache) bool {
		in := w.key.Namespace
		return c.Follows(in) && c.History(in) <= o.history && !versions.Reached(c.Watermark(in), o.Until)
	})
}
