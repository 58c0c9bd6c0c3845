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

// RESTOptions configure a [RESTListerWatcher].
type RESTOptions struct {
	// Resource is required.
	Resource schema.GroupVersionResource
	// Kind is the kind of one object. If it is set, an answer of another kind is an [objects.DecodeError]. Objects that
	// carry their kind (unstructured, metadata only) get it from here if the server leaves it out.
	Kind string
	// Namespace restricts the list to one namespace; "" means all, or a cluster-scoped resource.
	Namespace string
	// LabelSelector, FieldSelector and ShardSelector restrict the list further; the server evaluates them. A server
	// that does not know shards ignores ShardSelector and sends everything; the error is then [ErrNotSharded].
	LabelSelector, FieldSelector, ShardSelector string
	// New returns an object to decode into. It is required if the type parameter is an interface. Otherwise nil means
	// the zero object.
	New func() objects.Object
	// StandardDecoding uses the decoders of the types. Otherwise objects come without their managed fields and share
	// memory, so that a cache takes about a third: equal strings are shared, and equal parts of objects too, unless
	// [ListOptions].Exclusive is set. The parts of Go types that come as protobuf, and of *unstructured.Unstructured,
	// are shared; other Go types that come as JSON share only strings.
	StandardDecoding bool
}

// RESTListerWatcher lists and watches a resource of a Kubernetes API.
//
// The object's type decides the representation. Go types of the API come as protobuf if the type and the server support
// it, else as JSON. *unstructured.Unstructured comes as JSON. For *metav1.PartialObjectMetadata the server sends only
// metadata. Objects are decoded one by one, when they are asked for, straight from the body of the response.
type RESTListerWatcher[T objects.Object] struct {
	client rest.Interface
	o      RESTOptions
	decode wire.Decoder[T]
	read   *atomic.Int64
}

// BytesRead returns the number of decompressed bytes read from the server.
func (lw *RESTListerWatcher[T]) BytesRead() int64 { return lw.read.Load() }

// countedBody counts the bytes read.
type countedBody struct {
	io.ReadCloser
	read *atomic.Int64
}

func (b countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.read.Add(int64(n))
	return n, err
}

// NewRESTListerWatcher returns a ListerWatcher that uses the transport and base URL of client. It does not use the
// client's group and version, its codecs or its rate limiter: an informer makes few requests and has its own backoff.
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

func (lw *RESTListerWatcher[T]) request(kind wire.AnswerKind) *rest.Request {
	r := lw.o.Resource
	root := []string{"apis", r.Group, r.Version}
	if r.Group == "" {
		root = []string{"api", r.Version}
	}
	req := lw.client.Get().AbsPath(root...).Resource(r.Resource).NamespaceIfScoped(lw.o.Namespace,
		lw.o.Namespace != "").
		SetHeader("Accept", lw.decode.Accept(kind)).Throttle(nil).MaxRetries(0)
	param(req, "labelSelector", lw.o.LabelSelector)
	param(req, "fieldSelector", lw.o.FieldSelector)
	param(req, "shardSelector", lw.o.ShardSelector)
	return req
}

// param sets a query parameter unless value is "".
func param(req *rest.Request, name, value string) {
	if value != "" {
		req.Param(name, value)
	}
}

// List is described at [ListerWatcher].
func (lw *RESTListerWatcher[T]) List(ctx context.Context, o ListOptions, yield func(T) error) (ListResult, error) {
	req := lw.request(wire.AnswerList)
	param(req, "resourceVersion", o.ResourceVersion)
	param(req, "resourceVersionMatch", string(o.Match))
	param(req, "continue", o.Continue)
	if o.Limit > 0 {
		req.Param("limit", strconv.FormatInt(o.Limit, 10))
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

// ErrNotSharded reports that the server ignored the shard selector of a list. Lists of metadata only do not show this.
//
// Source: ListMeta.ShardInfo of k8s.io/apimachinery v0.37.2 (KEP-5866).
var ErrNotSharded = errors.New("the server ignored the shard selector")

// Watch is described at [ListerWatcher].
func (lw *RESTListerWatcher[T]) Watch(ctx context.Context, o WatchOptions) (Watch[T], error) {
	if o.SendInitialEvents && lw.o.ShardSelector != "" {
		// Only a list shows whether the server knows shards.
		one := ListOptions{Limit: 1, Unreadable: func(*objects.DecodeError) {}}
		if _, err := lw.List(ctx, one, func(T) error { return nil }); err != nil {
			return nil, err
		}
	}
	req := lw.request(wire.AnswerObjects).Param("watch", "true").Param("allowWatchBookmarks", "true")
	param(req, "resourceVersion", o.ResourceVersion)
	if o.SendInitialEvents {
		req.Param("sendInitialEvents", "true").Param("resourceVersionMatch",
			string(metav1.ResourceVersionMatchNotOlderThan))
	}
	if o.Timeout > 0 {
		// Rounded up: 0 would mean no timeout.
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
	// frames is nil until the first byte has shown the encoding.
	frames wire.FrameReader
}

// Next is described at [Watch]. It blocks in a read of the body, which fails when the ctx given to Watch ends.
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

// ended replaces the error of a connection by the cause of ctx, if ctx has ended.
func ended(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, io.EOF) {
		return cause
	}
	return err
}

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
