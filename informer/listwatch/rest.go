package listwatch

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/informer/internal/lean"
	"github.com/flyball-dev/flyball/informer/internal/wire"
	"github.com/flyball-dev/flyball/informer/objects"
	"github.com/flyball-dev/flyball/internal/misuse"
)

// RESTOptions say what a [RESTListerWatcher] lists.
type RESTOptions struct {
	// Resource is required.
	Resource schema.GroupVersionResource
	// Kind is the kind of one object. With it, an answer that holds another kind is a [objects.DecodeError]; objects
	// that say their kind (unstructured, metadata only) get it from here where the server leaves it out.
	Kind string
	// Namespace restricts to one namespace; "" is all, or a cluster-scoped resource.
	Namespace string
	// LabelSelector, FieldSelector and ShardSelector restrict further, on the server; "" does not. A server that
	// does not know shards would take no notice and send everything: that is [ErrNotSharded].
	LabelSelector, FieldSelector, ShardSelector string
	// New makes an object to decode into. Needed when the type parameter is an interface; otherwise nil is the zero
	// object.
	New func() objects.Object
	// StandardDecoding leaves decoding to the decoders of the types. Otherwise objects come without their managed
	// fields, equal strings are one, and equal parts of objects are one unless [ListOptions].Exclusive asks for
	// objects of one's own: a cache then takes a third of the memory. What a part is depends on the type: of Go
	// types of the API that come as protobuf, and of *unstructured.Unstructured, everything that refers to memory;
	// other Go types that come as JSON share nothing.
	StandardDecoding bool
}

// RESTListerWatcher lists and watches a resource of a Kubernetes API.
//
// The representation follows the object's type: Go types of the API come as protobuf where the type and the server
// have it, else as JSON; *unstructured.Unstructured as JSON; *metav1.PartialObjectMetadata asks the server for
// nothing but metadata. Objects are decoded one by one as they are taken, straight from the body of the response.
type RESTListerWatcher[T objects.Object] struct {
	client rest.Interface
	o      RESTOptions
	decode wire.Decoder[T]
	read   *atomic.Int64
}

// BytesRead is how much was read from the server, decompressed.
func (lw *RESTListerWatcher[T]) BytesRead() int64 { return lw.read.Load() }

// countedBody adds what is read to a count.
type countedBody struct {
	io.ReadCloser
	read *atomic.Int64
}

func (b countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.read.Add(int64(n))
	return n, err
}

// NewRESTListerWatcher returns a ListerWatcher over client. Of the client only the transport and base URL are used:
// not its group and version, its codecs, or its rate limiter (an informer makes few requests, and has a backoff of
// its own).
func NewRESTListerWatcher[T objects.Object](client rest.Interface, o RESTOptions) *RESTListerWatcher[T] {
	if misuse.IsNil(client) {
		panic(
			"listwatch: NewRESTListerWatcher: the client is nil: one like CoreV1().RESTClient() of a clientset is " +
				"needed",
		)
	}
	d := wire.Decoder[T]{Kind: o.Kind, GVK: o.Resource.GroupVersion().WithKind(o.Kind)}
	if o.New != nil {
		d.New = func() T { return o.New().(T) }
	} else {
		element := reflect.TypeFor[T]().Elem()
		d.New = func() T { return reflect.New(element).Interface().(T) }
	}
	if !o.StandardDecoding {
		d.Lean = lean.NewDecoder()
	}
	switch any(d.New()).(type) {
	case *unstructured.Unstructured:
		d.Form = wire.Unstructured
	case *metav1.PartialObjectMetadata:
		d.Form = wire.Metadata
	}
	return &RESTListerWatcher[T]{client: client, o: o, decode: d, read: new(atomic.Int64)}
}

// request begins a request for the resource.
func (lw *RESTListerWatcher[T]) request(kind wire.AnswerKind) *rest.Request {
	r := lw.o.Resource
	root := []string{"apis", r.Group, r.Version}
	if r.Group == "" {
		root = []string{"api", r.Version}
	}
	req := lw.client.Get().AbsPath(root...).Resource(r.Resource).NamespaceIfScoped(lw.o.Namespace,
		lw.o.Namespace != "").
		SetHeader("Accept", lw.decode.Accept(kind)).Throttle(nil).MaxRetries(0)
	set := func(name, value string) {
		if value != "" {
			req.Param(name, value)
		}
	}
	set("labelSelector", lw.o.LabelSelector)
	set("fieldSelector", lw.o.FieldSelector)
	set("shardSelector", lw.o.ShardSelector)
	return req
}

// List is described at [ListerWatcher].
func (lw *RESTListerWatcher[T]) List(ctx context.Context, o ListOptions, yield func(T) error) (ListResult, error) {
	req := lw.request(wire.AnswerList)
	if o.ResourceVersion != "" {
		req.Param("resourceVersion", o.ResourceVersion)
	}
	if o.Match != "" {
		req.Param("resourceVersionMatch", string(o.Match))
	}
	if o.Limit > 0 {
		req.Param("limit", strconv.FormatInt(o.Limit, 10))
	}
	if o.Continue != "" {
		req.Param("continue", o.Continue)
	}
	body, err := req.Stream(ctx)
	if err != nil {
		return ListResult{}, err
	}
	defer body.Close()
	m, err := lw.decode.List(countedBody{body, lw.read}, wire.Options{Held: o.Held, Exclusive: o.Exclusive},
		func(obj T, err error) error {
			var unreadable *objects.DecodeError
			switch {
			case err == nil:
				return yield(obj)
			case o.Unreadable != nil && errors.As(err, &unreadable) && unreadable.Key != "":
				o.Unreadable(unreadable)
				return nil
			default:
				return err
			}
		})
	if err == nil && m.ShardInfo == nil && lw.o.ShardSelector != "" && lw.decode.Form != wire.Metadata {
		err = ErrNotSharded
	}
	return ListResult{ResourceVersion: m.ResourceVersion, Continue: m.Continue}, err
}

// ErrNotSharded says that a list was not restricted to a shard although it was asked to be.
//
// Source: ListMeta.ShardInfo of k8s.io/apimachinery v0.37.2 (KEP-5866). Lists of metadata only do not carry it:
// there nothing can tell.
var ErrNotSharded = errors.New("the server ignored the shard selector")

// Watch is described at [ListerWatcher].
func (lw *RESTListerWatcher[T]) Watch(ctx context.Context, o WatchOptions) (Watch[T], error) {
	if o.SendInitialEvents && lw.o.ShardSelector != "" {
		// Only a list reports whether it is a shard.
		one := ListOptions{Limit: 1, Unreadable: func(*objects.DecodeError) {}}
		if _, err := lw.List(ctx, one, func(T) error { return nil }); err != nil {
			return nil, err
		}
	}
	req := lw.request(wire.AnswerObjects).Param("watch", "true").Param("allowWatchBookmarks", "true")
	if o.ResourceVersion != "" {
		req.Param("resourceVersion", o.ResourceVersion)
	}
	if o.SendInitialEvents {
		req.Param("sendInitialEvents", "true").Param("resourceVersionMatch",
			string(metav1.ResourceVersionMatchNotOlderThan))
	}
	if o.Timeout > 0 {
		// Rounded up: a timeout of nothing would be none.
		req.Param("timeoutSeconds", strconv.FormatInt(int64((o.Timeout+time.Second-1)/time.Second), 10))
	}
	body, err := req.Stream(ctx)
	if err != nil {
		return nil, err
	}
	body = countedBody{body, lw.read}
	return &restWatch[T]{
		decode: &lw.decode, o: wire.Options{Held: o.Held, Exclusive: o.Exclusive}, body: body,
		in: bufio.NewReader(body),
	}, nil
}

// restWatch is the stream of one watch.
type restWatch[T objects.Object] struct {
	decode *wire.Decoder[T]
	o      wire.Options
	body   io.ReadCloser
	in     *bufio.Reader
	// frames reads the next frame; nil until the first byte told the encoding.
	frames wire.FrameReader
}

// Next is described at [Watch]. The body belongs to the ctx given to Watch, whose end makes the read fail.
func (w *restWatch[T]) Next(ctx context.Context) (ev Event[T], err error) {
	if w.frames == nil {
		first, err := w.in.Peek(1)
		if err != nil {
			return ev, ended(ctx, err)
		}
		w.frames = wire.NewFrameReader(first[0], w.in)
	}
	f, err := w.frames.Next()
	if err != nil {
		return ev, ended(ctx, err)
	}
	return event(w.decode, f, w.o)
}

// Close is described at [Watch].
func (w *restWatch[T]) Close() error { return w.body.Close() }

// ended prefers the context's reason to what the connection made of it.
func ended(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, io.EOF) {
		return cause
	}
	return err
}

// event makes an event of a frame.
func event[T objects.Object](d *wire.Decoder[T], f wire.Frame, o wire.Options) (ev Event[T], err error) {
	ev.Type = EventType(f.Kind)
	switch ev.Type {
	case Added, Modified, Removed, Bookmark:
	case "ERROR":
		return ev, d.Status(f.Object)
	default:
		return ev, &objects.DecodeError{What: "watch event", Err: fmt.Errorf("unknown type %q", f.Kind)}
	}
	if ev.Type == Added && o.Held != nil {
		if s := d.State(f); o.Held(s) {
			ev.Held, ev.ResourceVersion = true, string(s.ResourceVersion)
			return ev, nil
		}
	}
	ev.Object, err = d.Object(f, o)
	var unreadable *objects.DecodeError
	if errors.As(err, &unreadable) && unreadable.Key != "" && unreadable.Version != "" && ev.Type != Bookmark {
		return Event[T]{Type: ev.Type, ResourceVersion: unreadable.Version, Unreadable: unreadable}, nil
	}
	if err != nil {
		return ev, err
	}
	ev.ResourceVersion = ev.Object.GetResourceVersion()
	if ev.Type == Bookmark {
		ev.InitialEventsEnd = ev.Object.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true"
		if ev.ResourceVersion == "" {
			return ev, &objects.DecodeError{What: "bookmark", Err: errors.New("it has no resource version")}
		}
		return ev, nil
	}
	return ev, d.Check(ev.Object)
}
