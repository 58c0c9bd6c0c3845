package handlers

import (
	"encoding/binary"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/localapi/gate"
	"github.com/flyball-dev/flyball/localapi/internal/codec"
	"github.com/flyball-dev/flyball/localapi/internal/registry"
	"github.com/flyball-dev/flyball/localapi/internal/resource"
	"github.com/flyball-dev/flyball/localapi/internal/watchcache"
)

// stream is a running watch on the wire.
type stream struct {
	*exchange
	client    *http.ResponseController
	limit     time.Time // until when the client must have read what is sent; zero: nothing is under way
	watcher   *registry.Watcher
	bookmarks bool  // requested by the client
	sent      int64 // the revision that the client has been told
	columns   bool  // a table's columns have been sent
	following bool  // the objects that existed when the watch began have been sent
	done      bool
}

// serveWatch answers a watch until its time is up, the client leaves or the server closes.
//
// Source: k8s.io/apiserver pkg/endpoints/handlers/watch.go, pkg/storage/cacher.
func (x *exchange) serveWatch() {
	o, err := x.listOptions()
	if err != nil {
		x.finish(x.answerError(err))
		return
	}
	selection, err := x.selection(o)
	if err == nil {
		_, err = x.tableOptions()
	}
	if err != nil {
		x.finish(x.answerError(err))
		return
	}
	options := registry.WatchOptions{
		Selection: selection, ResourceVersion: o.ResourceVersion,
		SendInitialEvents: o.SendInitialEvents,
	}
	if x.asOf > 0 && (o.ResourceVersion == "" || o.ResourceVersion == "0") {
		options.AsOf = x.asOf
		if !x.query.Has("sendInitialEvents") { // set by default, not by the client
			options.ResourceVersion, options.SendInitialEvents = strconv.FormatInt(x.asOf, 10), nil
		}
	}
	watcher, err := x.res.Watch(x.r.Context(), options)
	if err != nil && !isExpired(err) && !apierrors.IsTimeout(err) {
		x.finish(x.answerError(err))
		return
	}
	s := &stream{
		exchange: x, client: http.NewResponseController(x.w), watcher: watcher, bookmarks: o.AllowWatchBookmarks,
	}
	if !s.start() {
		return
	}
	if err != nil { // like a real server: a stream with one event
		s.fail(codec.Status(err))
		return
	}
	s.initial(o.SendInitialEvents != nil && *o.SendInitialEvents && o.AllowWatchBookmarks)
	s.follow(time.Duration(ptr.Deref(o.TimeoutSeconds, 0)) * time.Second)
}

// lastBookmark is how long before its timeout a watch gets its last bookmark.
//
// Source: k8s.io/apiserver v0.37.2 pkg/storage/cacher/cache_watcher.go nextBookmarkTime.
const lastBookmark = 2 * time.Second

// after returns a channel that gets a value after d, or never if d is not positive. stop releases it.
func after(d time.Duration) (c <-chan time.Time, stop func() bool) {
	if d <= 0 {
		return nil, func() bool { return false }
	}
	timer := time.NewTimer(d)
	return timer.C, timer.Stop
}

// start sends the response's header.
func (s *stream) start() bool {
	a := answer{code: http.StatusOK}
	verdict := s.after(a)
	if verdict.Action == gate.Fail {
		s.record(a)
		s.write(s.answerError(statusError(verdict.Status)), false)
		return false
	}
	s.lost = verdict.Action == gate.Drop
	s.record(a)
	if s.lost {
		s.lose()
	}
	contentType := s.out.Format.ContentType()
	if s.out.Format == codec.Protobuf {
		contentType += ";stream=watch"
	}
	s.w.Header().Set("Content-Type", contentType)
	s.w.Header().Set("Cache-Control", "no-cache, private")
	s.warnings.header(s.w.Header())
	s.w.WriteHeader(http.StatusOK)
	s.flush()
	return true
}

// readTimeout is how long the client of a watch may take to read what is sent to it. A client that has stopped reading
// would hold events, and a connection, for as long as it likes.
const readTimeout = time.Minute

// allow begins the time in which the client must read what is about to be sent, or renews it. It fails on a connection
// within the process, whose buffer is small.
func (s *stream) allow() {
	if now := time.Now(); s.limit.Sub(now) < readTimeout/2 {
		s.limit = now.Add(readTimeout)
		_ = s.client.SetWriteDeadline(s.limit)
	}
}

// flush sends what was written. Then the watch may be silent for as long as it likes.
func (s *stream) flush() {
	s.allow()
	if s.client.Flush() != nil {
		s.done = true // the client is gone, or does not read
	}
	s.limit = time.Time{}
	_ = s.client.SetWriteDeadline(s.limit)
}

func (s *stream) put(b []byte) {
	s.allow()
	if _, err := s.w.Write(b); err != nil {
		s.done = true // the client is gone, or does not read
	}
}

// initial announces the objects that existed when the watch began. If the client asked for a list in the form of a
// watch, a bookmark marks the end.
func (s *stream) initial(bookmark bool) {
	for _, o := range s.watcher.Initial {
		if s.send(registry.Notice{Type: watch.Added, Object: o}); s.done {
			return
		}
	}
	s.following = true
	s.sent = s.watcher.InitialRevision
	if bookmark {
		s.bookmark(s.watcher.InitialRevision, map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	}
	s.flush()
}

// follow sends events until the stream ends: after limit, if that is not zero.
func (s *stream) follow(limit time.Duration) {
	timeout, stop := after(limit)
	defer stop()
	last, stop := after(limit - lastBookmark)
	defer stop()
	var tick <-chan time.Time
	if s.bookmarks && s.api.BookmarkInterval > 0 {
		ticker := time.NewTicker(s.api.BookmarkInterval)
		defer ticker.Stop()
		tick = ticker.C
	}
	for !s.done {
		notices, revision, changed, err := s.watcher.Next(s.r.Context())
		if err != nil {
			s.fail(codec.Status(err))
			return
		}
		for _, n := range notices {
			if s.send(n); s.done {
				return
			}
		}
		if changed == nil {
			continue
		}
		s.flush()
		select {
		case <-changed:
		case <-tick:
			s.bookmarkIfNews(revision)
		case <-last:
			s.bookmarkIfNews(revision)
		case <-timeout:
			return
		case <-s.r.Context().Done():
			return
		case <-s.api.Stopping:
			return
		case <-s.res.Retired():
			return
		}
	}
}

func (s *stream) bookmarkIfNews(revision int64) {
	if s.bookmarks && revision > s.sent {
		s.bookmark(revision, nil)
		s.flush()
	}
}

// bookmark tells the client the revision up to which it has seen everything.
func (s *stream) bookmark(revision int64, annotations map[string]string) {
	obj := s.res.New()
	m := resource.Meta(obj)
	m.SetResourceVersion(strconv.FormatInt(revision, 10))
	m.SetAnnotations(annotations)
	s.send(registry.Notice{Type: watch.Bookmark, Object: &watchcache.Object{Object: obj, Meta: m}})
	s.sent = max(s.sent, revision)
}

// fail ends the stream with an error event.
func (s *stream) fail(status *metav1.Status) {
	s.done = true
	raw, err := s.api.Codec.Encode(status, s.out.Format, false)
	if err != nil {
		return
	}
	s.frame(watch.Error, raw)
	s.flush()
}

// send passes one event through the gate and sends it.
func (s *stream) send(n registry.Notice) {
	verdict := s.pass(n)
	switch verdict.Action {
	case gate.Drop:
		return
	case gate.Close:
		s.done = true
		return
	case gate.Fail:
		s.fail(codec.Status(statusError(verdict.Status)))
		return
	case gate.Garbage:
		s.put([]byte("\x00\x00\x00\x05garbage\n"))
		s.flush()
		return
	case gate.Bookmark:
		s.bookmarkUngated()
	}
	raw, err := s.encodeEvent(n)
	if err != nil {
		s.fail(codec.Status(err))
		return
	}
	if verdict.Action == gate.Truncate {
		frame := s.framed(n.Type, raw)
		s.put(frame[:len(frame)/2])
		s.flush()
		s.lose()
	}
	s.frame(n.Type, raw)
	if verdict.Action == gate.Repeat {
		s.frame(n.Type, raw)
	}
	if n.Object.Revision > s.sent {
		s.sent = n.Object.Revision
	}
	if s.api.Gate != nil {
		s.flush() // the gate may hold the next frame for long
	}
}

func (s *stream) pass(n registry.Notice) gate.Verdict {
	if s.api.Gate == nil {
		return gate.Verdict{}
	}
	verdict := s.api.Gate.Frame(s.r.Context(), s.info, gate.Frame{
		Type: n.Type, Namespace: n.Object.Meta.GetNamespace(), Name: n.Object.Meta.GetName(),
		ResourceVersion: n.Object.Meta.GetResourceVersion(), Initial: !s.following,
	})
	if s.r.Context().Err() != nil {
		return gate.Verdict{Action: gate.Close}
	}
	return verdict
}

// bookmarkUngated sends a bookmark that a gate asked for.
func (s *stream) bookmarkUngated() {
	obj := s.res.New()
	resource.Meta(obj).SetResourceVersion(strconv.FormatInt(s.sent, 10))
	if raw, err := s.api.Codec.Encode(obj, s.out.Format, false); err == nil {
		s.frame(watch.Bookmark, raw)
	}
}

// encodeEvent encodes an event's object: once for all watchers, unless it is converted.
func (s *stream) encodeEvent(n registry.Notice) ([]byte, error) {
	if s.out.As.Kind == "" {
		return s.encodeStored(n.Object)
	}
	var obj runtime.Object
	var err error
	if s.out.As.Kind == "Table" {
		obj, err = s.table(metav1.ListMeta{ResourceVersion: n.Object.Meta.GetResourceVersion()},
			[]runtime.Object{n.Object.Object}, !s.columns)
		s.columns = true
	} else {
		obj = s.partial(n.Object.Object)
	}
	if err != nil {
		return nil, err
	}
	return s.api.Codec.Encode(obj, s.out.Format, false)
}

func (s *stream) frame(t watch.EventType, raw []byte) { s.put(s.framed(t, raw)) }

// framed returns the event as it is sent: a line of JSON, or a protobuf message preceded by its length.
func (s *stream) framed(t watch.EventType, raw []byte) []byte {
	if s.out.Format != codec.Protobuf {
		name, err := json.Marshal(string(t))
		if err != nil {
			panic(err) // cannot fail: a string
		}
		b := make([]byte, 0, len(raw)+len(name)+24)
		b = append(b, `{"type":`...)
		b = append(b, name...)
		b = append(b, `,"object":`...)
		b = append(b, trimNewline(raw)...)
		return append(b, "}\n"...)
	}
	event := metav1.WatchEvent{Type: string(t), Object: runtime.RawExtension{Raw: raw}}
	size := event.Size()
	b := make([]byte, 4+size)
	binary.BigEndian.PutUint32(b, uint32(size))
	if _, err := event.MarshalToSizedBuffer(b[4:]); err != nil {
		panic(err) // cannot fail: the buffer has the message's size
	}
	return b
}

func trimNewline(b []byte) []byte {
	if n := len(b); n > 0 && b[n-1] == '\n' {
		return b[:n-1]
	}
	return b
}
