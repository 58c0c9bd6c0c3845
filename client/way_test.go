package client_test

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/gate"
	"github.com/flyball-dev/flyball/writes"
)

// way has the files of packages client and writes in which a call was running at the probes, in the order in which they
// first appeared.
type way struct{ files []string }

// here is the way that is being recorded; nil means none.
var here atomic.Pointer[way]

// probe adds the files on the call stack to the way, if the stack leads back to TestWayOfAWrite: informers run the
// probes, too.
func probe() {
	w := here.Load()
	if w == nil {
		return
	}
	callers := make([]uintptr, 256)
	frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers)])
	var files []string
	for more, inTest := true, false; more; {
		var frame runtime.Frame
		frame, more = frames.Next()
		inTest = inTest || strings.HasSuffix(frame.Function, ".TestWayOfAWrite")
		if in, ours := strings.CutPrefix(frame.Function, "github.com/flyball-dev/flyball/"); ours {
			folder := in[:strings.LastIndex(in, "/")+1] // Then follow the package, a dot, and the function.
			name, _, _ := strings.Cut(in[len(folder):], ".")
			files = append(files, folder+name+"/"+path.Base(frame.File))
		}
		if !more && !inTest {
			return
		}
	}
	for _, file := range slices.Backward(files) {
		stage, _, _ := strings.Cut(file, "/")
		if (stage == "client" || stage == "writes") && !strings.HasSuffix(file, "_test.go") &&
			!slices.Contains(w.files, file) {
			w.files = append(w.files, file)
		}
	}
}

// probed is a ConfigMap that is a probe where it is encoded, decoded and copied.
type probed struct{ corev1.ConfigMap }

func (p *probed) MarshalJSON() ([]byte, error) { probe(); return json.Marshal(&p.ConfigMap) }

func (p *probed) UnmarshalJSON(data []byte) error { probe(); return json.Unmarshal(data, &p.ConfigMap) }

func (p *probed) DeepCopyObject() kruntime.Object          { probe(); return &probed{*p.DeepCopy()} }
func transformed(obj client.Object) (client.Object, error) { probe(); return obj, nil }

// lagging is a cache that is a probe where the record of own writes asks about it.
type lagging struct{ writes.Cache }

func (lagging) Namespaces() []string    { probe(); return nil }
func (lagging) History(string) int64    { return 0 }
func (lagging) Watermark(string) string { return "1" }

// TestWayOfAWrite follows an Update to the Get that shows it, while the watch is stuck. The files on the way are those
// that doc.go lists, in that order. The probes are at all places where the way leads through code that a test can put
// there: the object's codec, the transport, a cache that the record asks, a transform, and the object's copy.
func TestWayOfAWrite(t *testing.T) {
	api, err := localapi.New(localapi.Options{
		Gate: gate.Funcs{OnFrame: func(ctx context.Context, _ *gate.Request, _ gate.Frame) gate.Verdict {
			<-ctx.Done()
			return gate.Verdict{}
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer api.Close()
	if err := api.Seed(t.Context(), configMap("a")); err != nil {
		t.Fatal(err)
	}
	config := api.RESTConfig()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return tripper(func(r *http.Request) (*http.Response, error) { probe(); return next.RoundTrip(r) })
	})
	record, err := writes.New(config)
	if err != nil {
		t.Fatal(err)
	}
	config.Wrap(record.Wrap)
	scheme := kruntime.NewScheme()
	scheme.AddKnownTypeWithName(corev1.SchemeGroupVersion.WithKind("ConfigMap"), &probed{})
	f, err := informer.NewFactory(config, informer.FactoryOptions{Scheme: scheme, Transform: transformed})
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(config, client.Options{Informers: f})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
	done := make(chan error)
	go func() { done <- f.Run(ctx) }()
	defer func() { stop(); <-done }()
	obj := &probed{}
	if err := c.Get(ctx, keyOf(configMap("a")), obj); err != nil {
		t.Fatal(err)
	}
	record.Resource(corev1.Resource("configmaps")).Join(lagging{})
	obj.Labels = map[string]string{"written": "yes"}

	w := &way{}
	here.Store(w)
	defer here.Store(nil)
	if err := c.Update(ctx, obj); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(ctx, keyOf(obj), obj); err != nil || obj.Labels["written"] != "yes" {
		t.Fatalf("labels %v, %v", obj.Labels, err)
	}
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for _, line := range regexp.MustCompile(`(?m)^//  \d+\. (\S+\.go)`).FindAllStringSubmatch(string(doc), -1) {
		listed = append(listed, line[1])
	}
	if !slices.Equal(w.files, listed) {
		t.Errorf("on the way are\n\t%s\nand doc.go lists\n\t%s", strings.Join(w.files, "\n\t"),
			strings.Join(listed, "\n\t"))
	}
}
