package opentelemetry_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/inspect"
	steps "github.com/flyball-dev/flyball/internal/trace"
	"github.com/flyball-dev/flyball/interop/opentelemetry"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/manager/ctrl"
	"github.com/flyball-dev/flyball/reconcile"
)

// fixture is a manager of one controller of ConfigMaps, and the spans that an Exporter makes of it.
type fixture struct {
	*localapi.Test
	exporter *opentelemetry.Exporter
	memory   *tracetest.InMemoryExporter
	client   client.Client
}

// run runs a manager in a bubble while script runs, and returns the spans.
func run(t *testing.T, slow sdk.SpanProcessor, reconcileOne func(ctx context.Context, c client.Client,
	m *corev1.ConfigMap) (ctrl.Result, error), script func(ctx context.Context, f *fixture),
) (spans tracetest.SpanStubs) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := &fixture{Test: localapi.NewTest(t), memory: tracetest.NewInMemoryExporter()}
		provider := sdk.NewTracerProvider(sdk.WithSyncer(f.memory))
		if slow != nil {
			provider.RegisterSpanProcessor(slow)
		}
		inspector := inspect.New(inspect.Options{})
		f.exporter = opentelemetry.New(inspector, provider, opentelemetry.Options{Buffer: 10, Recent: 100})
		mgr, err := ctrl.NewManager(f.RESTConfig(), ctrl.Options{Inspect: inspector})
		if err != nil {
			t.Fatal(err)
		}
		c := mgr.GetClient()
		r := reconcile.Func[ctrl.Request](func(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
			var m corev1.ConfigMap
			if err := c.Get(ctx, r.NamespacedName, &m); err != nil {
				return ctrl.Result{}, client.IgnoreNotFound(err)
			}
			return reconcileOne(ctx, c, &m)
		})
		err = errors.Join(ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Named("web").Complete(r),
			mgr.Add(f.exporter))
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(klog.NewContext(t.Context(), silent))
		ended := make(chan error)
		go func() { ended <- mgr.Run(ctx) }()
		synctest.Wait()
		if f.client, err = client.New(f.RESTConfig(), client.Options{}); err != nil {
			t.Fatal(err)
		}
		script(ctx, f)
		time.Sleep(time.Minute)
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		spans = f.memory.GetSpans()
	})
	return spans
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
}

// silent is a logger with a sink, which an Inspector can listen to.
var silent = funcr.New(func(string, string) {}, funcr.Options{})

// tree prints spans below their parents, in the order of their begins.
func tree(spans tracetest.SpanStubs, parent string, depth int) (text string) {
	for _, s := range spans {
		id := ""
		if s.Parent.IsValid() {
			id = s.Parent.SpanID().String()
		}
		if id != parent {
			continue
		}
		text += strings.Repeat("  ", depth) + s.Name
		if s.Status.Code == codes.Error {
			text += " failed"
		}
		if len(s.Links) > 0 {
			text += fmt.Sprintf(", %d links", len(s.Links))
		}
		text += "\n" + tree(spans, s.SpanContext.SpanID().String(), depth+1)
	}
	return text
}

// roots returns the trees of all traces.
func roots(spans tracetest.SpanStubs) string {
	slices.SortStableFunc(spans, func(a, b tracetest.SpanStub) int { return a.StartTime.Compare(b.StartTime) })
	return tree(spans, "", 0)
}

// done writes once.
func done(ctx context.Context, c client.Client, m *corev1.ConfigMap) (ctrl.Result, error) {
	if m.Data["done"] != "" {
		return ctrl.Result{}, nil
	}
	ctrl.LoggerFrom(ctx).Info("Not done yet")
	m.Data = map[string]string{"done": "yes"}
	return ctrl.Result{}, c.Update(ctx, m)
}

// An event, its change of the cache, the reconcile, its write, the event of that and what it causes are one trace.
func TestOneTraceForEachChange(t *testing.T) {
	spans := run(t, nil, done, func(ctx context.Context, f *fixture) {
		if err := f.client.Create(ctx, configMap("a")); err != nil {
			t.Error(err)
		}
	})
	const want = `event configmaps
  change configmaps
    reconcile web
      update configmaps
        event configmaps
          change configmaps
            reconcile web
`
	if got := roots(spans); !strings.HasSuffix(got, want) {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	logged := 0
	for _, s := range spans {
		logged += len(s.Events)
	}
	if logged != 1 {
		t.Errorf("%d events of spans, want the line of the log", logged)
	}
}

// A reconcile with two causes has one as its parent, and a link to the other.
func TestLinksToJoinedChanges(t *testing.T) {
	slow := func(context.Context, client.Client, *corev1.ConfigMap) (ctrl.Result, error) {
		time.Sleep(10 * time.Second)
		return ctrl.Result{}, nil
	}
	spans := run(t, nil, slow, func(ctx context.Context, f *fixture) {
		m := configMap("a")
		if err := f.client.Create(ctx, m); err != nil {
			t.Error(err)
		}
		for n := range 2 {
			time.Sleep(time.Second)
			m.Data = map[string]string{"n": fmt.Sprint(n)}
			if err := f.client.Update(ctx, m); err != nil {
				t.Error(err)
			}
		}
	})
	if got := roots(spans); !strings.Contains(got, "  change configmaps\n    reconcile web, 1 links\n") {
		t.Errorf("no reconcile has a parent and a link:\n%s", got)
	}
}

// A write that is refused, and the reconcile that returns its error, have failed. The retry stands beside them.
func TestFailures(t *testing.T) {
	tries := 0
	fails := func(ctx context.Context, c client.Client, m *corev1.ConfigMap) (ctrl.Result, error) {
		if tries++; tries > 1 {
			return ctrl.Result{}, nil
		}
		m.ResourceVersion = "1"
		m.Data = map[string]string{"try": "it"}
		return ctrl.Result{}, c.Update(ctx, m)
	}
	spans := run(t, nil, fails, func(ctx context.Context, f *fixture) {
		if err := f.client.Create(ctx, configMap("<script>alert(1)</script>")); err == nil {
			t.Error("the server took a name that is none")
		}
		if err := f.client.Create(ctx, configMap("a")); err != nil {
			t.Error(err)
		}
	})
	if got := roots(spans); !strings.Contains(got, "reconcile web failed\n      update configmaps failed\n") {
		t.Errorf("the failures do not show:\n%s", got)
	}
}

// standstill is a processor of spans that takes half a minute for the first.
type standstill struct {
	sdk.SpanProcessor
	once sync.Once
}

func (s *standstill) OnStart(context.Context, sdk.ReadWriteSpan) {
	s.once.Do(func() { time.Sleep(30 * time.Second) })
}

func (s *standstill) OnEnd(sdk.ReadOnlySpan) {}

// Steps that find no room are counted, and the pipeline goes on.
func TestNothingWaits(t *testing.T) {
	run(t, &standstill{}, done, func(ctx context.Context, f *fixture) {
		for n := range 50 {
			if err := f.client.Create(ctx, configMap(fmt.Sprint("a-", n))); err != nil {
				t.Error(err)
			}
		}
		time.Sleep(time.Second)
		for n := range 50 {
			m := configMap(fmt.Sprint("a-", n))
			if err := f.client.Get(ctx, client.ObjectKeyFromObject(m), m); err != nil || m.Data["done"] != "yes" {
				t.Errorf("%s: %v, %v", m.Name, err, m.Data)
			}
		}
		if n := f.exporter.Dropped(); n < 100 {
			t.Errorf("%d steps were dropped", n)
		}
	})
}

// A reconcile that ends while the manager stops has its span.
func TestReconcilesThatEndWhileStopping(t *testing.T) {
	slow := func(context.Context, client.Client, *corev1.ConfigMap) (ctrl.Result, error) {
		time.Sleep(time.Minute + 5*time.Second) // the manager is asked to stop after a minute
		return ctrl.Result{}, nil
	}
	spans := run(t, nil, slow, func(ctx context.Context, f *fixture) {
		if err := f.client.Create(ctx, configMap("a")); err != nil {
			t.Error(err)
		}
	})
	want := "event configmaps\n  change configmaps\n    reconcile web\n"
	if got := roots(spans); !strings.HasSuffix(got, want) {
		t.Errorf("the spans are\n%swant\n%s", got, want)
	}
}

// TestStepsBeforeRun: a manager may start a controller before the Exporter. Its first reconcile has a span all the
// same.
func TestStepsBeforeRun(t *testing.T) {
	inspector, memory := inspect.New(inspect.Options{}), tracetest.NewInMemoryExporter()
	e := opentelemetry.New(inspector, sdk.NewTracerProvider(sdk.WithSyncer(memory)), opentelemetry.Options{})
	recorder, key := inspector.Recorder(), steps.Subject{Controller: "web", Name: "a"}
	recorder.Ended(recorder.Began(key, 1, 0, 0, nil, time.Now()), key, "done", nil, 0, time.Now())
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := e.Run(ctx); err != nil {
		t.Error(err)
	}
	if spans := memory.GetSpans(); len(spans) != 1 || spans[0].Name != "reconcile web" {
		t.Errorf("%+v", spans)
	}
}

// An Exporter runs once, and tells when it is asked to run again.
func TestRunsOnce(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	e := opentelemetry.New(inspect.New(inspect.Options{}), sdk.NewTracerProvider(), opentelemetry.Options{})
	if err := e.Run(ctx); err != nil {
		t.Error(err)
	}
	if err := e.Run(ctx); err == nil {
		t.Error("it ran twice")
	}
}
