package reconcile_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/deltafifo"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/reconcile/handler"
	"github.com/flyball-dev/flyball/reconcile/source"
	"github.com/flyball-dev/flyball/workqueue"
)

// TestWayOfAnObject follows an object from the body of a watch to syncHandler, and compares the files that it passes
// with the list in informer/doc.go. The files come from call stacks: those of the functions that a user can give to the
// pipeline, and that of the reflector's goroutine while it waits at a full log. Of each stack only the part counts that
// begins with the loop of its goroutine: what started the loop is not on the object's way.
func TestWayOfAnObject(t *testing.T) {
	w := &way{
		t: t, files: map[string][]string{},
		reconciled: make(chan struct{}), held: make(chan struct{}), goOn: make(chan struct{}),
	}
	following.Lock()
	following.way = w
	following.Unlock()
	scheme := kruntime.NewScheme()
	scheme.AddKnownTypeWithName(corev1.SchemeGroupVersion.WithKind("Pod"), &followedPod{})
	factory, err := informer.NewFactory(&rest.Config{Host: "http://server", Transport: w},
		informer.FactoryOptions{Scheme: scheme, StandardDecoding: true})
	if err != nil {
		t.Fatal(err)
	}
	pods, err := informer.For[*followedPod](factory)
	if err != nil {
		t.Fatal(err)
	}
	if err := pods.AddIndex("way", func(pod *followedPod) ([]string, error) {
		switch pod.Name {
		case "first":
			w.record("index", "consume")
		case "second": // The log fills up behind it.
			close(w.held)
			<-w.goOn
		}
		return nil, nil
	}); err != nil {
		t.Fatal(err)
	}
	reconciler := reconcile.Func[reconcile.Request](
		func(_ context.Context, key reconcile.Request) (reconcile.Result, error) {
			if key.Name == "first" {
				w.record("reconciler", "runWorker")
				close(w.reconciled)
			}
			return reconcile.Result{}, nil
		})
	group := func(key reconcile.Request) string {
		if key.Name == "first" {
			w.record("queue", "Serve")
		}
		return ""
	}
	c := reconcile.New("way", reconciler, reconcile.Options[reconcile.Request]{
		Order: workqueue.NewFairOrder(workqueue.FairOptions[reconcile.Request]{Group: group}),
	})
	if err := c.Watch(source.Kind(pods, handler.EnqueueObject[*followedPod]())); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	factory.Start(ctx)
	var running sync.WaitGroup
	running.Go(func() { _ = c.Run(ctx) })
	<-w.held
	w.recordWaitingPush()
	close(w.goOn)
	stop()
	running.Wait()
	factory.Shutdown()

	// The reflector pulls: an object goes from the inner functions of these stacks to the outer ones. All other stacks
	// push it on, from the outer functions to the inner ones.
	var all []string
	for _, stack := range []string{"body", "decoder"} {
		inner := w.files[stack]
		all = append(all, inner[:len(inner)-1]...) // The last one is the reflector's loop.
	}
	for _, stack := range []string{"log", "index", "queue", "reconciler"} {
		outer := slices.Clone(w.files[stack])
		slices.Reverse(outer)
		all = append(all, outer...)
	}
	var passed []string
	for _, file := range all {
		if !slices.Contains(passed, file) {
			passed = append(passed, file)
		}
	}
	doc, err := os.ReadFile("../informer/doc.go")
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for _, m := range regexp.MustCompile(`(?m)^//\s+\d+\. (\S+\.go)`).FindAllStringSubmatch(string(doc), -1) {
		listed = append(listed, m[1])
	}
	if !slices.Equal(passed, listed) {
		t.Errorf("the object passed\n\t%s\ninformer/doc.go lists\n\t%s", strings.Join(passed, "\n\t"),
			strings.Join(listed, "\n\t"))
	}
}

// way is the server, and has the files of the call stacks.
type way struct {
	t *testing.T
	// reconciled is closed when the first pod was reconciled, held when the consumer is held at the second, goOn when
	// it may go on.
	reconciled, held, goOn chan struct{}

	mu sync.Mutex
	// files has the files of each stack, the innermost function first.
	files map[string][]string
}

// following has the way for the objects that a decoder makes, which refer to nothing.
var following struct {
	sync.Mutex
	*way
}

// followedPod is a Pod that records its decoder.
type followedPod struct{ corev1.Pod }

func (p *followedPod) Unmarshal(data []byte) error {
	following.Lock()
	following.record("decoder", "follow")
	following.Unlock()
	return p.Pod.Unmarshal(data)
}

// record records the call stack, up to the function loop. The deepest stack counts, because the first read of a body
// only peeks.
func (w *way) record(stack, loop string) {
	pcs := make([]uintptr, 100)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	var files []string
	for more := true; more; {
		var frame runtime.Frame
		frame, more = frames.Next()
		if strings.HasSuffix(frame.Function, ".syncHandler") {
			files = nil // The way ends here.
		}
		files = append(files, frame.File)
		if strings.HasSuffix(frame.Function, "."+loop) {
			w.keep(stack, files)
			return
		}
	}
}

// recordWaitingPush waits until the reflector waits at a full log, and records its stack.
func (w *way) recordWaitingPush() {
	line := regexp.MustCompile(`(?m)^(\S+)\(.*\)\n\t(\S+\.go):`)
	for buf := make([]byte, 1<<20); ; time.Sleep(time.Millisecond) {
		for _, goroutine := range strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
			if !strings.Contains(goroutine, "deltafifo.(*DeltaFIFO") || !strings.Contains(goroutine, "[select") {
				continue
			}
			var files []string
			for _, m := range line.FindAllStringSubmatch(goroutine, -1) {
				files = append(files, m[2])
				if strings.HasSuffix(m[1], ".follow") {
					w.keep("log", files)
					return
				}
			}
		}
	}
}

// keep keeps those files of a stack that belong to this module and are no tests.
func (w *way) keep(stack string, files []string) {
	_, self, _, _ := runtime.Caller(0)
	root := filepath.Dir(filepath.Dir(self)) + "/"
	var kept []string
	for _, file := range files {
		own, ok := strings.CutPrefix(file, root)
		if ok && !strings.HasSuffix(own, "_test.go") && !slices.Contains(kept, own) {
			kept = append(kept, own)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(kept) > len(w.files[stack]) {
		w.files[stack] = kept
	}
}

// RoundTrip answers discovery, an empty list, and a watch of many pods.
func (w *way) RoundTrip(req *http.Request) (*http.Response, error) {
	answer := func(code int, body io.ReadCloser) (*http.Response, error) {
		return &http.Response{
			StatusCode: code, Body: body, Request: req,
			Header: http.Header{"Content-Type": {"application/json"}},
		}, nil
	}
	text := func(code int, s string) (*http.Response, error) {
		return answer(code, io.NopCloser(strings.NewReader(s)))
	}
	switch {
	case req.URL.Path == "/api/v1":
		return text(200, `{"kind": "APIResourceList", "groupVersion": "v1",
			"resources": [{"name": "pods", "namespaced": true, "kind": "Pod"}]}`)
	case req.URL.Path != "/api/v1/pods":
		return text(404, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}`)
	case req.URL.Query().Get("watch") == "":
		return text(200, `{"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": []}`)
	}
	return answer(200, &watchBody{way: w, ctx: req.Context()})
}

// watchBody is the body of a watch: two pods, and more than the log can hold.
type watchBody struct {
	*way
	ctx     context.Context
	version int
	rest    []byte
}

func (b *watchBody) Read(p []byte) (int, error) {
	b.record("body", "follow")
	if len(b.rest) == 0 {
		b.version++
		name := fmt.Sprint("pod-", b.version)
		switch b.version {
		case 1:
			name = "first"
		case 2: // Not before, or the consumer might be held before the workers have started.
			<-b.reconciled
			name = "second"
		case 3 * deltafifo.Limit: // The consumer may have taken a full log together with the second pod.
			<-b.ctx.Done()
			return 0, b.ctx.Err()
		}
		b.rest = frame(b.t, name, b.version+1)
	}
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	return n, nil
}

func (b *watchBody) Close() error { return nil }

// frame encodes the ADDED event of a pod.
func frame(t *testing.T, name string, version int) []byte {
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: "default", UID: "uid", ResourceVersion: fmt.Sprint(version),
	}}
	raw, err1 := pod.Marshal()
	unknown := kruntime.Unknown{TypeMeta: kruntime.TypeMeta{APIVersion: "v1", Kind: "Pod"}, Raw: raw}
	envelope, err2 := unknown.Marshal()
	event := metav1.WatchEvent{
		Type: "ADDED", Object: kruntime.RawExtension{Raw: append([]byte("k8s\x00"), envelope...)},
	}
	message, err3 := event.Marshal()
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Error(err)
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(message))), message...)
}
