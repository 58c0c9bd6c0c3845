package writes

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/internal/closed"
	"github.com/flyball-dev/flyball/internal/versions"
	"github.com/flyball-dev/flyball/internal/wire"
	"github.com/flyball-dev/flyball/writes/internal/caches"
)

// Intent has what package client knows about a write and the request does not show.
type Intent struct {
	// Name is the name of the object to create.
	Name string
	// Deleted is the object to delete, as the caller knows it; nil for other writes.
	Deleted metav1.Object
	// Precondition is the only UID that may be deleted; "" if any may.
	Precondition types.UID
	// Decode decodes an answer, which is an object of Kind. It also keeps the object for the client, so that an answer
	// is decoded only once.
	//
	// Errors: an answer of another kind.
	Decode func(contentType string, body []byte) (metav1.Object, error)
	Kind   schema.GroupVersionKind
}

// WithIntent returns a context for one request of package client.
func WithIntent(ctx context.Context, i *Intent) context.Context {
	return context.WithValue(ctx, intentKey, i)
}

// Write is a request that changes something, from before it is sent until its effect is known.
type Write struct {
	resource *Resource
	// owner is the owner of the request's context, such as a reconcile. waker may be nil.
	owner any
	waker Waker

	method      string
	key         types.NamespacedName
	subresource string
	// all is set if the write deletes every object of the collection that the selectors select.
	all        bool
	collection string
	selectors  url.Values
	// intent is empty for requests of other clients.
	intent Intent
	// body returns the body of the request: an object, a patch or the options of a deletion. It is nil for the body of
	// a subresource.
	body        func() (io.ReadCloser, error)
	contentType string
	// known are the states in which this process has seen the object to delete.
	known []identity
	// done is closed when the request is over. Nothing is sent.
	done chan struct{}
	// abandoned is set when RunUntilIdle no longer waits for the write. It is guarded by the resource's mu.
	abandoned bool

	mu sync.Mutex
	// outcome is guarded by mu.
	outcome outcome
}

// identity is one state of one object.
type identity struct {
	uid     types.UID
	version string
}

func identityOf(obj metav1.Object) identity { return identity{obj.GetUID(), obj.GetResourceVersion()} }

// outcome is what is known of a write whose answer did not show its effect.
type outcome struct {
	// inDoubt is set when the request is over and its effect is not known.
	inDoubt bool
	// lost is the error that left the effect unknown. It is nil while the write is under way, and if an answer came
	// that does not show the effect.
	lost error
	// askAfter is when the server may be asked about the write. If the object's name is not known, a list that begins
	// then or later is sure to show the effect.
	askAfter time.Time
	// lateUntil is until when the server may still apply the write, if it is a deletion that takes any object with the
	// name; zero for other writes.
	lateUntil time.Time
	// listVersion is the version of a list that shows the effect, in the server's history of number listHistory; ""
	// before there is one.
	listVersion string
	listHistory int64
	// name is the object's name if only the request's body has it.
	name string
	// objects are the states that caches show once they have the effect. silent is set if the server did not answer
	// when it was asked.
	objects []caches.Written
	silent  bool
}

// begin records a write before it is sent.
func (r *Record) begin(request *http.Request, to wire.Place) *Write {
	ctx := request.Context()
	w := &Write{
		resource: r.Resource(to.Resource), owner: OwnerFrom(ctx), waker: wakerFrom(ctx),
		method: request.Method, key: to.Key, subresource: to.Subresource, collection: to.Collection,
		done: make(chan struct{}),
	}
	if w.all = w.Deletes() && to.Key.Name == ""; w.all {
		w.selectors = url.Values{}
		for _, name := range []string{"labelSelector", "fieldSelector"} {
			if value := request.URL.Query().Get(name); value != "" {
				w.selectors.Set(name, value)
			}
		}
	}
	if to.Subresource == "" || w.Patches() {
		w.body, w.contentType = request.GetBody, request.Header.Get("Content-Type")
	}
	if i, ours := ctx.Value(intentKey).(*Intent); ours {
		w.intent = *i
		if w.key.Name == "" && !w.all {
			w.key.Name = i.Name
		}
		if i.Deleted != nil {
			w.known = append(w.known, identityOf(i.Deleted))
		}
	}
	if w.Deletes() && !w.all {
		w.known = append(w.known, w.resource.identities(w.key)...)
	}
	w.resource.begin(w)
	return w
}

// Deletes reports whether the write can only remove objects, not change them.
func (w *Write) Deletes() bool { return w.method == http.MethodDelete }

// Patches reports whether the write is a patch. Sent returns the patch then.
func (w *Write) Patches() bool { return w.method == http.MethodPatch }

// All reports whether the write deletes a whole collection.
func (w *Write) All() bool { return w.all }

// Key returns the object's key. Its name is empty for a generated name, and for a deletion of many objects.
func (w *Write) Key() types.NamespacedName {
	key := w.key
	if key.Name == "" {
		key.Name = w.state().name
	}
	return key
}

// Sent returns the object, the patch or the options that the request sent; nil if they are not known.
func (w *Write) Sent() (contentType string, body []byte) {
	return w.contentType, contentOf(w.body)
}

// contentOf returns the body of a request; nil if it cannot be read a second time.
func contentOf(body func() (io.ReadCloser, error)) []byte {
	if body == nil {
		return nil
	}
	reader, err := body()
	if err != nil {
		return nil
	}
	defer reader.Close()
	content, err := io.ReadAll(reader)
	if err != nil {
		return nil
	}
	return content
}

// effect returns the effect that the answer shows; nil means none. shown is false if the answer does not show the
// effect.
func (w *Write) effect(a wire.Answer, body []byte) (e *Entry, shown bool) {
	key := types.NamespacedName{Namespace: a.Namespace, Name: a.Name}
	switch {
	case w.all:
		deleted := wire.Items(a.ContentType, body)
		w.addDeleted(deleted)
		return nil, deleted != nil && len(deleted) == 0 // An empty list: no event would come that ends a doubt.
	case a.Kind == "": // Not an object, such as a page of a proxy.
		return nil, false
	case a.Kind == "Status" && w.Deletes() && a.UID != "":
		return w.gone(a.UID, w.known), true
	case a.Kind == "Status":
		return nil, false
	case w.Deletes() && (!a.Deleting || a.Gone()):
		return w.gone(a.UID, w.known), true
	case a.Gone():
		e = w.gone(a.UID, w.known)
		e.Version = versions.Later(e.Version, a.ResourceVersion)
		return e, true
	case a.ResourceVersion == "":
		return nil, true // A subresource that changes nothing, such as a token or a review.
	case w.subresource != "" && key != w.key:
		return nil, false
	}
	return w.entry(a, body), true
}

// refused returns what the refusal of a write shows about the object: a refused deletion can show that an object is
// gone. A 404 that does not name the object is about the path: a proxy does not know it, or the server does not serve
// that version of the API.
func (w *Write) refused(response *http.Response, body []byte) *Entry {
	switch code := response.StatusCode; {
	case !w.Deletes() || w.all:
	case code == http.StatusNotFound:
		if a := wire.Identify(response.Header.Get("Content-Type"), body); a.Kind == "Status" && a.Name == w.key.Name {
			return w.lastGone(w.known)
		}
	case code == http.StatusConflict && w.intent.Precondition != "" && bytes.Contains(body, []byte(preconditionUID)):
		return w.gone(w.intent.Precondition, w.known)
	}
	return nil
}

// entry returns the entry of the object in an answer.
func (w *Write) entry(a wire.Answer, body []byte) *Entry {
	return &Entry{
		Key: types.NamespacedName{Namespace: a.Namespace, Name: a.Name}, Version: a.ResourceVersion, GVK: a.GVK(),
		Body: body, ContentType: a.ContentType, resource: w.resource, uid: a.UID, owner: w.owner, at: time.Now(),
	}
}

// gone returns the entry of the deleted object with that UID. This process has seen the known states.
func (w *Write) gone(uid types.UID, known []identity) *Entry {
	e := &Entry{Key: w.Key(), Gone: true, resource: w.resource, uid: uid, owner: w.owner, at: time.Now()}
	for _, state := range known {
		if state.uid == uid && state.version != "" {
			e.Version = versions.Later(e.Version, state.version)
		}
	}
	return e
}

// lastGone returns the entry for a server that has no object of that name: the last one that this process has seen is
// gone. It is nil if there was none. known are the states that the process has seen.
func (w *Write) lastGone(known []identity) *Entry {
	for _, last := range slices.Backward(known) { // The last comes from a cache.
		if last.uid != "" {
			return w.gone(last.uid, known)
		}
	}
	return nil
}

// addDeleted records the objects that the answer to a deletion of many lists, as they were before it.
func (w *Write) addDeleted(items []wire.Answer) {
	var objects []caches.Written
	for _, item := range items {
		objects = append(objects, caches.Written{
			Resource: w.resource.Name, Key: types.NamespacedName{Namespace: item.Namespace, Name: item.Name},
			UID: item.UID,
		})
	}
	w.update(func(o *outcome) { o.objects = objects })
}

// lose ends a write whose effect is unknown. If answered is set, the server is done with the write. Otherwise the
// server may still apply the write until its request timeout. Readers wait for that timeout only if a late effect does
// harm; see [Write.harmsLate]. If it does not, it is enough to ask the server once.
func (w *Write) lose(why error, answered bool) {
	contentType, body := w.Sent()
	if w.key.Name == "" && body != nil { // A clientset sent it: only the body has the object's name.
		w.update(func(o *outcome) { o.name = wire.Identify(contentType, body).Name })
	}
	askAfter := time.Now()
	switch late := askAfter.Add(w.resource.record.peer.Load().requestTimeout); {
	case answered || !w.harmsLate(contentType, body):
	case w.Deletes() && !w.all: // The server's answer may show that the deletion is over.
		w.update(func(o *outcome) { o.lateUntil = late })
	default:
		askAfter = late
	}
	w.endInDoubt(why, askAfter)
}

// harmsLate reports whether the write does harm if the server applies it late, after this process has looked and
// written again. A creation with a generated name makes one object more, an update or a patch without a precondition
// undoes what was written since, and a deletion without one deletes what was created since. Other writes are refused
// then, or have the effect that was wanted, and the reconcile gets an event.
func (w *Write) harmsLate(contentType string, body []byte) bool {
	switch {
	case w.Deletes():
		return w.all || !wire.Preconditioned(contentType, body)
	case w.method == http.MethodPut && body != nil: // A UID does not bind it to a version.
		return wire.Identify(contentType, body).ResourceVersion == ""
	case w.Patches():
		return !wire.Conditional(contentType, body)
	}
	return w.Key().Name == ""
}

// endInDoubt ends a request whose effect is not known. lost and askAfter are fields of the outcome.
func (w *Write) endInDoubt(lost error, askAfter time.Time) {
	w.update(func(o *outcome) { o.inDoubt, o.lost, o.askAfter = true, lost, askAfter })
	close(w.done)
}

// update changes what is known of the effect.
func (w *Write) update(change func(o *outcome)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change(&w.outcome)
}

// isOver reports whether the request is over.
func (w *Write) isOver() bool { return closed.Is(w.done) }

// state returns what is known of the effect.
func (w *Write) state() outcome {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.outcome
}

// Concerns reports whether a read of c in a namespace ("" means all) on behalf of owner has to wait for the write, if
// the write could change what it reads; the caller finds that out. A nil owner stands for a read outside of a
// reconcile, which does not wait for a write whose answer was lost: it treats that like a write of another process.
func (w *Write) Concerns(c Cache, namespace string, owner any) bool {
	in := w.key.Namespace
	if !caches.Takes(c.Namespaces(), in) || (namespace != "" && in != "" && namespace != in) {
		return false
	}
	o := w.state()
	if owner == nil {
		return o.inDoubt && o.lost == nil
	}
	// A write of another owner that is still under way is concurrent: the read may come before it as well as after.
	return o.inDoubt || w.owner == owner
}

// mayChange reports whether the write may change the object of that key, or any object if the key has no name. A write
// whose object's name is not known may change every object.
func (w *Write) mayChange(key types.NamespacedName) bool {
	return key.Name == "" || w.key.Name == "" || w.key == key
}

// settledIn reports whether all caches show the write's effect.
func (w *Write) settledIn(all []*joinedCache) bool {
	return w.state().listVersion != "" && !slices.ContainsFunc(all, func(c *joinedCache) bool {
		return caches.Takes(c.Namespaces(), w.key.Namespace) && !w.shownIn(c)
	})
}

// shownIn reports whether c has reached a list that shows the write's effect.
func (w *Write) shownIn(c Cache) bool {
	o, in := w.state(), w.key.Namespace
	return o.listVersion != "" &&
		(c.History(in) > o.listHistory || versions.Reached(c.Watermark(in), o.listVersion))
}
