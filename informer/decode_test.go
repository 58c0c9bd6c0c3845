package informer

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/informer/objects"
	"github.com/flyball-dev/flyball/internal/heapsize"
)

// answering returns a source of pods that answers every request with body.
func answering(t *testing.T, media string, body []byte) *listwatch.RESTListerWatcher[*corev1.Pod] {
	return listwatch.NewRESTListerWatcher[*corev1.Pod](
		restClient(t, answer(func(r *http.Request) (int, string, []byte) { return 200, media, body })), podResource,
	)
}

// message is a protobuf message of length-delimited fields: number, content, number, content …
func message(t *testing.T, fields ...any) (m []byte) {
	t.Helper()
	for i := 0; i < len(fields); i += 2 {
		var content []byte
		switch c := fields[i+1].(type) {
		case []byte:
			content = c
		case interface{ Marshal() ([]byte, error) }:
			content = must(c.Marshal())
		}
		m = binary.AppendUvarint(m, uint64(fields[i].(int))<<3|2)
		m = append(binary.AppendUvarint(m, uint64(len(content))), content...)
	}
	return m
}

// enveloped returns a message in the envelope of the API.
func enveloped(t *testing.T, kind string, raw []byte) []byte {
	t.Helper()
	u := &runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: kind}, Raw: raw}
	return append([]byte("k8s\x00"), must(u.Marshal())...)
}

// TestUnreadableIsNamed (case 16): name and version of an object that cannot be decoded are still read, and the objects
// around it are decoded. Callers without Unreadable get an error, and so do all callers if not even the name can be
// read.
func TestUnreadableIsNamed(t *testing.T) {
	meta := &metav1.ObjectMeta{Namespace: "ns", Name: "bad", UID: "u9", ResourceVersion: "6"}
	protobufPod := message(t, 1, meta, 2, []byte{0xff, 0xff})
	const jsonPod = `{"kind":"Pod","metadata":{"namespace":"ns","name":"bad","uid":"u9","resourceVersion":"6","labels":{"a":1}},"spec":{"containers":"none"}}`
	jsonGood := must(json.Marshal(pod("good", "5")))
	for name, c := range map[string]struct {
		media            string
		list, event, not []byte
	}{
		"json": {
			"application/json",
			fmt.Appendf(nil, `{"kind":"PodList","metadata":{"resourceVersion":"7"},"items":[%s,%s]}`, jsonPod,
				jsonGood),
			fmt.Appendf(nil, `{"type":"MODIFIED","object":%s}`, jsonPod),
			[]byte(`{"kind":"PodList","metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":7}}]}`),
		},
		"protobuf": {
			"application/vnd.kubernetes.protobuf",
			enveloped(t, "PodList",
				message(t, 1, &metav1.ListMeta{ResourceVersion: "7"}, 2, protobufPod, 2, pod("good", "5"))),
			framed(message(t, 1, []byte("MODIFIED"), 2, message(t, 1, enveloped(t, "Pod", protobufPod)))),
			enveloped(t, "PodList", message(t, 2, message(t, 1, []byte{0xff, 0xff}))),
		},
	} {
		t.Run(name, func(t *testing.T) {
			is := func(e *objects.DecodeError) bool {
				return e != nil && e.Key == "ns/bad" && e.UID == "u9" && e.Version == "6" &&
					strings.HasPrefix(e.Error(), "decode object ns/bad: ")
			}
			var got []string
			var told []*objects.DecodeError
			keep := func(p *corev1.Pod) error { got = append(got, p.Name); return nil }
			tell := func(e *objects.DecodeError) { told = append(told, e) }
			lw := answering(t, c.media, c.list)
			result, err := lw.List(t.Context(), listwatch.ListOptions{Unreadable: tell}, keep)
			if err != nil || result.ResourceVersion != "7" || !slices.Equal(got, []string{"good"}) || len(told) != 1 ||
				!is(told[0]) {
				t.Errorf("List = %+v, %v; got %v, told %v", result, err, got, told)
			}
			var e *objects.DecodeError
			if _, err := lw.List(t.Context(), listwatch.ListOptions{}, keep); !errors.As(err, &e) || !is(e) {
				t.Errorf("without asking: %v", err)
			}
			if _, err := answering(t, c.media, c.not).List(t.Context(), listwatch.ListOptions{Unreadable: tell},
				keep); !errors.As(err, &e) || e.Key != "" {
				t.Errorf("without a name: %v", err)
			}
			w := must(answering(t, c.media, c.event).Watch(t.Context(), listwatch.WatchOptions{}))
			if ev, err := w.Next(t.Context()); err != nil || ev.Type != listwatch.Modified ||
				ev.ResourceVersion != "6" || !is(ev.Unreadable) {
				t.Errorf("Next = %+v, %v", ev, err)
			}
		})
	}
}

func framed(event []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(event))), event...)
}

// TestDeeplyNestedObject: an object that is nested as deep as encoding/json allows, and so an API server, is decoded in
// a list and in a watch: one user's object must not stop the cache of all.
func TestDeeplyNestedObject(t *testing.T) {
	const levels = 10_000 - 2 // the object and its spec are two
	item := `{"kind":"Thing","apiVersion":"example.com/v1","metadata":{"name":"deep","resourceVersion":"5"},"spec":{"a":` +
		strings.Repeat("[", levels) + strings.Repeat("]", levels) + `}}`
	for body, ask := range map[string]func(listwatch.ListerWatcher[*unstructured.Unstructured]) (string, error){
		`{"kind":"ThingList","metadata":{"resourceVersion":"7"},"items":[` + item + `]}`: func(
			lw listwatch.ListerWatcher[*unstructured.Unstructured],
		) (name string, err error) {
			_, err = lw.List(t.Context(), listwatch.ListOptions{}, func(u *unstructured.Unstructured) error {
				name = u.GetName()
				return nil
			})
			return name, err
		},
		`{"type":"ADDED","object":` + item + `}`: func(
			lw listwatch.ListerWatcher[*unstructured.Unstructured],
		) (string, error) {
			w := must(lw.Watch(t.Context(), listwatch.WatchOptions{}))
			event, err := w.Next(t.Context())
			if err != nil {
				return "", err
			}
			return event.Object.GetName(), nil
		},
	} {
		for _, standard := range []bool{false, true} {
			o := listwatch.RESTOptions{
				Resource: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "things"},
				Kind:     "Thing", StandardDecoding: standard,
			}
			client := restClient(t, answer(func(*http.Request) (int, string, []byte) {
				return 200, "application/json", []byte(body)
			}))
			name, err := ask(listwatch.NewRESTListerWatcher[*unstructured.Unstructured](client, o))
			if name != "deep" || err != nil {
				t.Errorf("%.30s, standard decoding %v: %q, %v", body, standard, name, err)
			}
		}
	}
}

// TestJSONLists: a list is decoded whatever the order of its members, and with unknown members. A list that was cut off
// is not taken for a malformed one.
func TestJSONLists(t *testing.T) {
	const item = `{"metadata":{"name":"p","resourceVersion":"1"}}`
	for name, c := range map[string]struct {
		body, want string
		objects    int
	}{
		"items first": {`{"apiVersion":"v1","items":[` + item + `,` + item +
			`],"kind":"PodList","metadata":{"resourceVersion":"7"}}`, "", 2},
		"no items": {`{"kind":"PodList","metadata":{"resourceVersion":"7"},"items":null}`, "", 0},
		"unknown fields": {`{"x":{"items":[1]},"metadata":{"resourceVersion":"7","y":[]},"items":[` + item +
			`],"z":null}`, "", 1},
		"kind last": {
			`{"items":[` + item + `],"metadata":{},"kind":"ServiceList"}`, "the server sent a Service",
			1,
		},
		"truncated": {
			`{"metadata":{"resourceVersion":"7"},"items":[` + item + `,{"metadata"`, "unexpected EOF",
			1,
		},
		"no end":          {`{"metadata":{"resourceVersion":"7"},"items":[` + item + `]`, "unexpected EOF", 1},
		"empty":           {``, "unexpected EOF", 0},
		"an array":        {`[` + item + `]`, "decode list", 0},
		"items an object": {`{"items":{}}`, "decode list", 0},
		"null":            {`null`, "decode list", 0},
		"no list": {
			`{"error":"no upstream","metadata":{"resourceVersion":"7"}}`, "neither items nor the kind",
			0,
		},
		"nothing":    {`{}`, "neither items nor the kind", 0},
		"kind alone": {`{"kind":"PodList","metadata":{"resourceVersion":"7"}}`, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			n := 0
			result, err := answering(t, "application/json", []byte(c.body)).List(t.Context(), listwatch.ListOptions{},
				func(*corev1.Pod) error { n++; return nil })
			var decode *objects.DecodeError
			switch {
			case n != c.objects:
				t.Errorf("%d objects", n)
			case c.want == "" && (err != nil || result.ResourceVersion != "7"):
				t.Errorf("%+v, %v", result, err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("%v, want %s", err, c.want)
			case c.want != "" && errors.As(err, &decode) == errors.Is(err, io.ErrUnexpectedEOF):
				t.Errorf("%v", err)
			}
		})
	}
}

// TestJSONListIsNotHeld: only one item of a JSON list is in memory at a time.
func TestJSONListIsNotHeld(t *testing.T) {
	const items = 200
	var body bytes.Buffer
	body.WriteString(`{"items":[`)
	for i := range items {
		fmt.Fprintf(&body, `{"metadata":{"name":"p%d","annotations":{"weight":"%s"}}},`, i, strings.Repeat("x", 16<<10))
	}
	body.Truncate(body.Len() - 1)
	body.WriteString(`]}`)
	lw := answering(t, "application/json", body.Bytes())
	before, n, peak := heapsize.Now(), 0, 0
	must(lw.List(t.Context(), listwatch.ListOptions{}, func(*corev1.Pod) error {
		if n++; n%(items/4) == 0 {
			peak = max(peak, heapsize.Now())
		}
		return nil
	}))
	if n != items || peak > before+512<<10 {
		t.Errorf("%d items of %d bytes; %d bytes were held", n, body.Len(), peak-before)
	}
}

// TestServerWithoutShards: a server that ignores a shard selector is detected before anything is cached.
func TestServerWithoutShards(t *testing.T) {
	for name, w := range wires {
		for _, shard := range []*metav1.ShardInfo{nil, {Selector: "shardRange(object.metadata.uid, '0x0', '0x8')"}} {
			list := w.list(t, &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "7", ShardInfo: shard}})
			o := podResource
			o.ShardSelector = "shardRange(object.metadata.uid, '0x0', '0x8')"
			lw := listwatch.NewRESTListerWatcher[*corev1.Pod](
				restClient(t, answer(func(*http.Request) (int, string, []byte) { return 200, w.media, list })), o,
			)
			_, err := lw.List(t.Context(), listwatch.ListOptions{}, func(*corev1.Pod) error { return nil })
			_, streamErr := lw.Watch(t.Context(), listwatch.WatchOptions{SendInitialEvents: true})
			if sharded := shard != nil; (err == nil) != sharded || (streamErr == nil) != sharded || !sharded &&
				!errors.Is(err, listwatch.ErrNotSharded) {
				t.Errorf("%s, sharded %v: %v, %v", name, sharded, err, streamErr)
			}
		}
	}
}
