package informer

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/informer/internal/connection"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/informer/objects"
)

// codec is one of the two encodings of the API, as client-go's serializers write it, for our decoder to read.
type codec struct {
	media string
	list  func(t *testing.T, obj runtime.Object) []byte
	event func(t *testing.T, kind string, obj runtime.Object) []byte
}

var wires = map[string]codec{
	"json":     newCodec("application/json"),
	"protobuf": newCodec("application/vnd.kubernetes.protobuf"),
}

func newCodec(media string) codec {
	var info runtime.SerializerInfo
	for _, i := range scheme.Codecs.SupportedMediaTypes() {
		if i.MediaType == media {
			info = i
		}
	}
	encode := func(t *testing.T, obj runtime.Object, s runtime.Serializer) []byte {
		t.Helper()
		var b bytes.Buffer
		if err := scheme.Codecs.EncoderForVersion(s,
			schema.GroupVersions{corev1.SchemeGroupVersion, metav1.Unversioned}).Encode(obj, &b); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	return codec{
		media: media,
		list:  func(t *testing.T, obj runtime.Object) []byte { return encode(t, obj, info.Serializer) },
		event: func(t *testing.T, kind string, obj runtime.Object) []byte {
			t.Helper()
			ev := &metav1.WatchEvent{Type: kind, Object: runtime.RawExtension{Raw: encode(t, obj, info.Serializer)}}
			if media == "application/json" {
				data, err := json.Marshal(ev)
				if err != nil {
					t.Fatal(err)
				}
				return append(data, '\n')
			}
			data, err := ev.Marshal()
			if err != nil {
				t.Fatal(err)
			}
			return append(binary.BigEndian.AppendUint32(nil, uint32(len(data))), data...)
		},
	}
}

// answer is a transport that answers every request with f, without a network.
type answer func(r *http.Request) (status int, media string, body []byte)

func (f answer) RoundTrip(r *http.Request) (*http.Response, error) {
	status, media, body := f(r)
	return &http.Response{
		StatusCode: status, Request: r, Header: http.Header{"Content-Type": {media}, "Retry-After": {"3"}},
		Body: io.NopCloser(bytes.NewReader(body)),
	}, nil
}

func restClient(t *testing.T, transport http.RoundTripper) rest.Interface {
	t.Helper()
	f, err := NewFactory(&rest.Config{Host: "http://api.example", Transport: transport}, FactoryOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return f.client
}

func pod(name, rv string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, ResourceVersion: rv, UID: "u-1",
			Labels: map[string]string{"app": "web"},
		},
		Spec: corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
}

var podResource = listwatch.RESTOptions{Resource: corev1.SchemeGroupVersion.WithResource("pods"), Kind: "Pod"}

func TestRESTListDecodesBothEncodings(t *testing.T) {
	for name, w := range wires {
		t.Run(name, func(t *testing.T) {
			var asked *http.Request
			list := &corev1.PodList{
				ListMeta: metav1.ListMeta{
					ResourceVersion: "7", Continue: "next",
					ShardInfo: &metav1.ShardInfo{Selector: "s"},
				},
				Items: []corev1.Pod{*pod("a", "5"), *pod("b", "6")},
			}
			o := podResource
			o.Namespace, o.LabelSelector, o.FieldSelector = "default", "app=web", "spec.nodeName=n1"
			o.ShardSelector = "shardRange(object.metadata.uid, '0x0', '0x8')"
			client := restClient(t, answer(func(r *http.Request) (int, string, []byte) {
				asked = r
				return 200, w.media, w.list(t, list)
			}))
			lw := listwatch.NewRESTListerWatcher[*corev1.Pod](client, o)
			var got []*corev1.Pod
			result, err := lw.List(t.Context(),
				listwatch.ListOptions{ResourceVersion: "4", Match: metav1.ResourceVersionMatchNotOlderThan, Limit: 2},
				func(p *corev1.Pod) error {
					got = append(got, p)
					return nil
				})
			if err != nil || result != (listwatch.ListResult{ResourceVersion: "7", Continue: "next"}) {
				t.Fatalf("List = %+v, %v", result, err)
			}
			if len(got) != 2 || got[0].Spec.Containers[0].Image != "i" || got[1].Labels["app"] != "web" ||
				got[1].Kind != "" {
				t.Errorf("got %+v", got)
			}
			want := "/api/v1/namespaces/default/pods?fieldSelector=spec.nodeName%3Dn1&labelSelector=app%3Dweb&limit=2" +
				"&resourceVersion=4&resourceVersionMatch=NotOlderThan" +
				"&shardSelector=shardRange%28object.metadata.uid%2C+%270x0%27%2C+%270x8%27%29"
			if u := asked.URL.RequestURI(); u != want {
				t.Errorf("asked for %s\nwant      %s", u, want)
			}
			if a := asked.Header.Get("Accept"); a != "application/vnd.kubernetes.protobuf,application/json" {
				t.Errorf("Accept = %s", a)
			}
		})
	}
}

func TestRESTWatchDecodesBothEncodings(t *testing.T) {
	for name, w := range wires {
		t.Run(name, func(t *testing.T) {
			end := pod("", "9")
			end.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
			status := apierrors.NewResourceExpired("too old").Status()
			body := bytes.Join([][]byte{
				w.event(t, "ADDED", pod("a", "5")), w.event(t, "MODIFIED", pod("a", "6")),
				w.event(t, "DELETED", pod("a", "8")),
				w.event(t, "BOOKMARK", end), w.event(t, "ERROR", &status),
			}, nil)
			var asked *http.Request
			client := restClient(t, answer(func(r *http.Request) (int, string, []byte) {
				asked = r
				return 200, w.media, body
			}))
			lw := listwatch.NewRESTListerWatcher[*corev1.Pod](client, podResource)
			watch, err := lw.Watch(t.Context(),
				listwatch.WatchOptions{ResourceVersion: "4", SendInitialEvents: true, Timeout: 1500 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			defer watch.Close()
			want := "/api/v1/pods?allowWatchBookmarks=true&resourceVersion=4&resourceVersionMatch=NotOlderThan" +
				"&sendInitialEvents=true&timeoutSeconds=2&watch=true"
			if u := asked.URL.RequestURI(); u != want {
				t.Errorf("asked for %s\nwant      %s", u, want)
			}
			for _, want := range []string{
				"ADDED 5 a false", "MODIFIED 6 a false", "DELETED 8 a false",
				"BOOKMARK 9  true",
			} {
				ev, err := watch.Next(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if got := fmt.Sprintf("%s %s %s %v", ev.Type, ev.ResourceVersion, ev.Object.Name,
					ev.InitialEventsEnd); got != want {
					t.Errorf("got %s, want %s", got, want)
				}
			}
			if _, err := watch.Next(t.Context()); !apierrors.IsResourceExpired(err) {
				t.Errorf("ERROR event gave %v", err)
			}
			if _, err := watch.Next(t.Context()); err != io.EOF {
				t.Errorf("end of stream gave %v", err)
			}
		})
	}
}

// TestRESTWatchBroken: a stream that breaks within a frame did not end in good order.
func TestRESTWatchBroken(t *testing.T) {
	for name, w := range wires {
		frame := w.event(t, "ADDED", pod("a", "5"))
		for _, cut := range []int{1, 3, 5, len(frame) / 2, len(frame) - 2} {
			client := restClient(t, answer(func(*http.Request) (int, string, []byte) {
				return 200, w.media, frame[:cut]
			}))
			lw := listwatch.NewRESTListerWatcher[*corev1.Pod](client, podResource)
			watch, err := lw.Watch(t.Context(), listwatch.WatchOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := watch.Next(t.Context()); err != io.ErrUnexpectedEOF {
				t.Errorf("%s cut at %d of %d: %v", name, cut, len(frame), err)
			}
		}
	}
}

// fetch lists the pods, or reads the first event of a watch.
func fetch(t *testing.T, lw listwatch.ListerWatcher[*corev1.Pod], watch bool) error {
	t.Helper()
	if !watch {
		_, err := lw.List(t.Context(), listwatch.ListOptions{}, func(*corev1.Pod) error { return nil })
		return err
	}
	w, err := lw.Watch(t.Context(), listwatch.WatchOptions{})
	if err == nil {
		_, err = w.Next(t.Context())
	}
	return err
}

// TestRESTSenseless: anything but an object of the resource is a DecodeError that names what came instead.
func TestRESTSenseless(t *testing.T) {
	const j = "application/json"
	protobuf := wires["protobuf"]
	for name, c := range map[string]struct {
		watch bool
		body  []byte
		want  string
	}{
		"table": {
			false, []byte(`{"kind":"Table","apiVersion":"meta.k8s.io/v1","rows":[]}`),
			"the server sent a Table",
		},
		"other list": {
			false, []byte(`{"kind":"ServiceList","items":[]}`),
			"the server sent a Service, expected a Pod",
		},
		"other protobuf": {
			false, protobuf.list(t, &corev1.ServiceList{}),
			"the server sent a Service, expected a Pod",
		},
		"html": {false, []byte(`<html>proxy</html>`), "decode list"},
		"half protobuf": {
			false, protobuf.list(t, &corev1.PodList{Items: []corev1.Pod{*pod("a", "1")}})[:40],
			"cut short",
		},
		"bad field": {
			false,
			[]byte(
				`{"kind":"PodList","items":[{"metadata":{"namespace":"ns","name":"p"},"spec":{"containers":"none"}}]}`,
			), "decode object ns/p",
		},
		"magic alone": {false, []byte("k8s\x00"), "neither items nor the kind"},
		"empty error": {true, []byte(`{"type":"ERROR","object":null}`), "it is empty"},
		"no name":     {false, []byte(`{"kind":"PodList","items":[{"metadata":{}}]}`), "it has no name"},
		"other event": {
			true, []byte(`{"type":"ADDED","object":{"kind":"Service","metadata":{"name":"s"}}}`),
			"the server sent a Service, expected a Pod",
		},
		"unknown event": {
			true, []byte(`{"type":"RENAMED","object":{"kind":"Pod","metadata":{"name":"s"}}}`),
			`unknown type "RENAMED"`,
		},
		"garbage frame":   {true, []byte(`{"type":"ADDED","object":{]}`), "decode watch event"},
		"endless frame":   {true, []byte{0x00, 0xff, 0xff, 0xff, 1, 2, 3}, ""},
		"frame too large": {true, []byte{0x00, 0x00, 0x00, 0x02, 0xff, 0xff}, "cut short"},
	} {
		t.Run(name, func(t *testing.T) {
			lw := listwatch.NewRESTListerWatcher[*corev1.Pod](
				restClient(t, answer(func(*http.Request) (int, string, []byte) { return 200, j, c.body })), podResource,
			)
			err := fetch(t, lw, c.watch)
			if c.want == "" {
				if err != io.ErrUnexpectedEOF {
					t.Errorf("got %v", err)
				}
				return
			}
			var decode *objects.DecodeError
			if !errors.As(err, &decode) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want a DecodeError with %q", err, c.want)
			}
		})
	}
}

// endless is the beginning of an answer, followed by one character without end. read counts the bytes read.
type endless struct {
	begin io.Reader
	c     byte
	read  int
}

func (e *endless) Read(p []byte) (int, error) {
	n, err := e.begin.Read(p)
	if err != nil && e.read < 100<<20 {
		for n = range p {
			p[n] = e.c
		}
		n, err = len(p), nil
	}
	e.read += n
	return n, err
}

// TestRESTObjectsAreBounded: an object without an end is given up after 16 MiB, in an event and in a list.
func TestRESTObjectsAreBounded(t *testing.T) {
	j, p := "application/json", "application/vnd.kubernetes.protobuf"
	for name, c := range map[string]struct {
		watch       bool
		media, text string
	}{
		"JSON event":    {true, j, `{"type":"ADDED","object":{"kind":"Pod","metadata":{"name":"`},
		"JSON item":     {false, j, `{"kind":"PodList","items":[{"metadata":{"name":"`},
		"protobuf item": {false, p, "k8s\x00\x12\xff\xff\xff\xff\x0f\x12\xff\xff\xff\xff\x0e\x0a"},
	} {
		t.Run(name, func(t *testing.T) {
			body := &endless{begin: strings.NewReader(c.text), c: 'x'}
			transport := roundTripper(func(*http.Request) (*http.Response, error) {
				return &http.Response{
					StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {c.media}}, Body: io.NopCloser(body),
				}, nil
			})
			lw := listwatch.NewRESTListerWatcher[*corev1.Pod](restClient(t, transport), podResource)
			err := fetch(t, lw, c.watch)
			if malformed := (*objects.DecodeError)(nil); !errors.As(err, &malformed) ||
				!strings.Contains(err.Error(), "more than 16 MiB") {
				t.Errorf("got %v, want that an object has more than 16 MiB", err)
			}
			if body.read > 17<<20 {
				t.Errorf("%d bytes were read", body.read)
			}
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements [http.RoundTripper].
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestRESTUnstructuredKeepsWhatItDoesNotKnow(t *testing.T) {
	body := `{"kind":"WidgetList","apiVersion":"example.com/v1","metadata":{"resourceVersion":"3"},` +
		`"items":[{"metadata":{"name":"w"},"spec":{"big":9007199254740993,"odd":{"x":[1,2.5]}}}]}`
	var accept string
	lw := listwatch.NewRESTListerWatcher[*unstructured.Unstructured](restClient(t,
		answer(func(r *http.Request) (int, string, []byte) {
			accept = r.Header.Get("Accept")
			return 200, "application/json", []byte(body)
		})), listwatch.RESTOptions{
		Resource: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}, Kind: "Widget",
	})
	var got *unstructured.Unstructured
	if _, err := lw.List(t.Context(), listwatch.ListOptions{},
		func(u *unstructured.Unstructured) error { got = u; return nil }); err != nil {
		t.Fatal(err)
	}
	if got.GetKind() != "Widget" || got.GetAPIVersion() != "example.com/v1" {
		t.Errorf("kind %s %s", got.GetAPIVersion(), got.GetKind())
	}
	if n, _, _ := unstructured.NestedInt64(got.Object, "spec", "big"); n != 9007199254740993 {
		t.Errorf("big = %d", n)
	}
	if accept != "application/json" {
		t.Errorf("Accept = %s", accept)
	}
}

func TestRESTMetadataOnly(t *testing.T) {
	list := &metav1.PartialObjectMetadataList{
		Items: []metav1.PartialObjectMetadata{{ObjectMeta: pod("a", "5").ObjectMeta}},
	}
	list.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("PartialObjectMetadataList"))
	data, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	var accept string
	lw := listwatch.NewRESTListerWatcher[*metav1.PartialObjectMetadata](restClient(t,
		answer(func(r *http.Request) (int, string, []byte) {
			accept = r.Header.Get("Accept")
			return 200, "application/json", data
		})), podResource)
	var got *metav1.PartialObjectMetadata
	if _, err := lw.List(t.Context(), listwatch.ListOptions{},
		func(m *metav1.PartialObjectMetadata) error { got = m; return nil }); err != nil {
		t.Fatal(err)
	}
	if got.Name != "a" || got.Kind != "Pod" || got.APIVersion != "v1" {
		t.Errorf("got %+v", got)
	}
	if !strings.HasPrefix(accept,
		"application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,") {
		t.Errorf("Accept = %s", accept)
	}
}

// TestRESTErrors: the error for a server's fault says what a person has to do.
func TestRESTErrors(t *testing.T) {
	refused := httptest.NewServer(nil)
	url := refused.URL
	refused.Close()
	client, err := NewFactory(&rest.Config{Host: url}, FactoryOptions{})
	if err != nil {
		t.Fatal(err)
	}
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "",
		errors.New(`User "x" cannot list resource "pods" in API group "" at the cluster scope`)).Status()
	answering := func(code int, s *metav1.Status) rest.Interface {
		return restClient(t, answer(func(*http.Request) (int, string, []byte) {
			if s == nil {
				return code, "text/plain", []byte("Too many requests, please try again later.\n")
			}
			return code, "application/json", wires["json"].list(t, s)
		}))
	}
	for name, c := range map[string]struct {
		client rest.Interface
		want   string
	}{
		"refused": {client.client, "cannot list pods at the cluster scope: cannot reach " + url +
			": connection refused"},
		"forbidden": {
			answering(403, &forbidden),
			`cannot list pods at the cluster scope: forbidden: User "x" cannot list resource "pods" in API group "" at the cluster scope`,
		},
		"busy": {
			answering(429, nil),
			"cannot list pods at the cluster scope: the server has received too many requests and has asked us to " +
				"try " +
				"again later (get pods)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			lw := listwatch.NewRESTListerWatcher[*corev1.Pod](c.client, podResource)
			_, err := lw.List(t.Context(), listwatch.ListOptions{}, func(*corev1.Pod) error { return nil })
			if got := (&RequestError{Verb: "list", Resource: "pods", Err: err}).Error(); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if name == "busy" && connection.RetryAfter(err) != 3*time.Second {
				t.Errorf("retry after %v", connection.RetryAfter(err))
			}
		})
	}
}

// TestRetryAfterIsBounded: if a server asks for a pause of a day, the pause is five minutes.
func TestRetryAfterIsBounded(t *testing.T) {
	for seconds, want := range map[int]time.Duration{3: 3 * time.Second, 24 * 60 * 60: 5 * time.Minute} {
		if got := connection.RetryAfter(apierrors.NewTooManyRequests("busy", seconds)); got != want {
			t.Errorf("after a Retry-After of %d seconds: %v, want %v", seconds, got, want)
		}
	}
}

// TestRESTCancel: a watch that blocks in a read ends at once when its context does.
func TestRESTCancel(t *testing.T) {
	entered := make(chan struct{})
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.(http.Flusher).Flush()
		close(entered)
		<-r.Context().Done()
	}))
	defer api.Close()
	f, err := NewFactory(&rest.Config{Host: api.URL}, FactoryOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	w, err := listwatch.NewRESTListerWatcher[*corev1.Pod](f.client, podResource).Watch(ctx, listwatch.WatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	<-entered
	cancel()
	if _, err := w.Next(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Next = %v", err)
	}
}
