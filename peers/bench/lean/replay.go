package lean

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Replay is a server of one resource that answers lists and watches from a file, as fast as they are read,
// uncompressed. It knows lists, streamed lists, and watches in which it sends what it is told to by requests to
// /control:
//
//	/control/updates?rate=1000&seconds=60   that many changes a second, of the first thousand objects in turn
//	/control/expire                         ends every watch with 410 Gone
//
// It is no API server: it takes whatever it is asked for as a question for its resource, and nothing changes what it
// lists.
type Replay struct {
	resource Resource
	objects  *objects
	hot      [][]byte
	// control has what the watch is to do; there is one watch at a time.
	control chan command
	lists   atomic.Int64
}

// command is what a watch is told to do.
type command struct {
	rate, seconds int
	expire        bool
	done          chan struct{} // closed by the watch
}

// NewReplay returns a server of the n objects in a generated file.
func NewReplay(r Resource, file string, n int) (*Replay, error) {
	objects, err := openObjects(file, n)
	if err != nil {
		return nil, err
	}
	hot, err := objects.some(min(n, 1000))
	if err != nil {
		return nil, err
	}
	return &Replay{resource: r, objects: objects, hot: hot, control: make(chan command)}, nil
}

// Serve serves n objects of a resource until the process ends. It keeps them in a file below dir, and writes its
// address to out.
func Serve(resource, dir string, n int, out io.Writer) error {
	r := Resources[resource]
	file, err := r.Generate(dir, n)
	if err != nil {
		return err
	}
	s, err := NewReplay(r, file, n)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "http://"+l.Addr().String())
	return http.Serve(l, s)
}

// last is the resource version of the list.
func (s *Replay) last() string { return strconv.Itoa(firstVersion + s.objects.n) }

func (s *Replay) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	number := func(name string) int { n, _ := strconv.Atoi(q.Get(name)); return n }
	switch {
	case r.URL.Path == "/control/updates":
		s.tell(r.Context(), command{rate: number("rate"), seconds: number("seconds")})
	case r.URL.Path == "/control/expire":
		s.tell(r.Context(), command{expire: true})
	case r.URL.Path == "/control/lists":
		fmt.Fprint(w, s.lists.Load())
	case q.Get("watch") != "":
		s.watch(w, r, q.Get("sendInitialEvents") == "true")
	case r.URL.Path == "/api/v1/"+s.resource.Plural || r.URL.Path == "/apis/"+s.resource.GVK.GroupVersion().String()+
		"/"+s.resource.Plural:
		s.list(w)
	default:
		http.NotFound(w, r)
	}
}

// tell gives a command to the watch and waits until it is executed.
func (s *Replay) tell(ctx context.Context, c command) {
	c.done = make(chan struct{})
	select {
	case s.control <- c:
		<-c.done
	case <-ctx.Done():
	}
}

// media sets the content type.
func (s *Replay) media(w http.ResponseWriter, stream string) {
	media := "application/json"
	if s.resource.Protobuf {
		media = "application/vnd.kubernetes.protobuf"
	}
	w.Header().Set("Content-Type", media+stream)
}

// magic begins every object in protobuf.
var magic = []byte("k8s\x00")

// field is a length-delimited field of a message, without its content.
func field(number, size int) []byte {
	return binary.AppendUvarint([]byte{byte(number<<3 | 2)}, uint64(size))
}

// envelope is what stands before an object of that size and kind.
func (r Resource) envelope(kind string, size int) []byte {
	m := &runtime.TypeMeta{APIVersion: r.GVK.GroupVersion().String(), Kind: kind}
	b, _ := m.Marshal()
	head := append(append(bytes.Clone(magic), field(1, len(b))...), b...)
	return append(head, field(2, size)...)
}

func (s *Replay) list(w http.ResponseWriter) {
	s.lists.Add(1)
	s.media(w, "")
	if !s.resource.Protobuf {
		fmt.Fprintf(w, `{"apiVersion":%q,"kind":"%sList","metadata":{"resourceVersion":%q},"items":[`,
			s.resource.GVK.GroupVersion(), s.resource.GVK.Kind, s.last())
		comma := []byte(nil)
		_ = s.objects.each(func(data []byte) error {
			_, _ = w.Write(comma)
			comma = []byte(",")
			_, err := w.Write(data)
			return err
		})
		fmt.Fprint(w, "]}")
		return
	}
	meta, _ := (&metav1.ListMeta{ResourceVersion: s.last()}).Marshal()
	size := len(field(1, len(meta))) + len(meta)
	_ = s.objects.each(func(data []byte) error { size += len(field(2, len(data))) + len(data); return nil })
	_, _ = w.Write(
		append(append(s.resource.envelope(s.resource.GVK.Kind+"List", size), field(1, len(meta))...), meta...),
	)
	_ = s.objects.each(func(data []byte) error {
		_, _ = w.Write(field(2, len(data)))
		_, err := w.Write(data)
		return err
	})
}

// frame is one event of a watch.
func (r Resource) frame(event string, object []byte) []byte {
	if !r.Protobuf {
		return fmt.Appendf(nil, `{"type":%q,"object":%s}`+"\n", event, object)
	}
	object = append(r.envelope(r.GVK.Kind, len(object)), object...)
	raw := append(field(1, len(object)), object...)
	m := append(append(field(1, len(event)), event...), field(2, len(raw))...)
	m = append(m, raw...)
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(m))), m...)
}

// bookmark ends a streamed list.
func (s *Replay) bookmark() []byte {
	m := metav1.PartialObjectMetadata{
		ObjectMeta: metav1.ObjectMeta{
			ResourceVersion: s.last(),
			Annotations:     map[string]string{metav1.InitialEventsAnnotationKey: "true"},
		},
	}
	m.APIVersion, m.Kind = s.resource.GVK.GroupVersion().String(), s.resource.GVK.Kind
	var data []byte
	if s.resource.Protobuf {
		data, _ = m.Marshal()
	} else {
		data, _ = json.Marshal(&m)
	}
	return s.resource.frame("BOOKMARK", data)
}

// gone ends a watch.
func (s *Replay) gone() []byte {
	status := metav1.Status{
		Status: metav1.StatusFailure, Reason: metav1.StatusReasonExpired, Code: http.StatusGone,
		Message: "too old resource version",
	}
	status.APIVersion, status.Kind = "v1", "Status"
	if !s.resource.Protobuf {
		data, _ := json.Marshal(&status)
		return s.resource.frame("ERROR", data)
	}
	data, _ := status.Marshal()
	as := s.resource
	as.GVK.Group, as.GVK.Version, as.GVK.Kind = "", "v1", "Status"
	return as.frame("ERROR", data)
}

func (s *Replay) watch(w http.ResponseWriter, r *http.Request, list bool) {
	s.media(w, ";stream=watch")
	flush := w.(http.Flusher).Flush
	if list {
		s.lists.Add(1)
		if s.objects.each(
			func(data []byte) error { _, err := w.Write(s.resource.frame("ADDED", data)); return err },
		) != nil {
			return
		}
		_, _ = w.Write(s.bookmark())
	}
	flush()
	for {
		select {
		case c := <-s.control:
			if c.expire {
				_, _ = w.Write(s.gone())
				close(c.done)
				return
			}
			s.update(w, flush, c)
			close(c.done)
		case <-r.Context().Done():
			return
		}
	}
}

// update sends changes at an even rate, flushed at most every millisecond.
func (s *Replay) update(w http.ResponseWriter, flush func(), c command) {
	was := make([]string, len(s.hot)) // Where the version stands is found by what it was.
	for i := range was {
		was[i] = strconv.Itoa(firstVersion + i)
	}
	began, total := time.Now(), c.rate*c.seconds
	for sent := 0; sent < total; {
		due := min(total, int(time.Since(began).Seconds()*float64(c.rate))+1)
		for ; sent < due; sent++ {
			i := sent % len(s.hot)
			now := version(time.Now())
			data := s.hot[i]
			at := bytes.Index(data, []byte(was[i]))
			if at < 0 {
				panic("an object without its resource version")
			}
			copy(data[at:], now)
			was[i] = now
			if _, err := w.Write(s.resource.frame("MODIFIED", data)); err != nil {
				return
			}
		}
		flush()
		time.Sleep(max(time.Millisecond, time.Duration(float64(time.Second)/float64(c.rate))))
	}
	for i := range was { // As it was, for who comes next.
		at := bytes.Index(s.hot[i], []byte(was[i]))
		copy(s.hot[i][at:], strconv.Itoa(firstVersion+i))
	}
}
