package stock_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/conditions"
	"github.com/flyball-dev/flyball/client/manifest"
	"github.com/flyball-dev/flyball/examples/operators/items/api"
	"github.com/flyball-dev/flyball/examples/operators/items/stock"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/gate"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/manager/metrics"
)

// world is a server whose watches lag, and somebody who works at it.
type world struct {
	*testing.T
	ctx context.Context
	api *localapi.Test
	lag atomic.Int64 // nanoseconds that each frame of a watch takes
	client.Client
}

// inWorld runs test in a bubble, with the resources defined.
func inWorld(t *testing.T, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, ctx: klog.NewContext(t.Context(), klog.Logger{})}
		slow := gate.Funcs{OnFrame: func(ctx context.Context, _ *gate.Request, _ gate.Frame) gate.Verdict {
			select {
			case <-time.After(time.Duration(w.lag.Load())):
			case <-ctx.Done():
			}
			return gate.Verdict{}
		}}
		w.api = localapi.NewTestWith(t,
			localapi.Options{Gate: slow, NoKubernetesService: true, BookmarkInterval: 10 * time.Minute})
		them, err := client.New(w.api.RESTConfig(), client.Options{Scheme: api.NewScheme()})
		w.must(err)
		w.Client = them
		definitions, err := api.CRDs()
		w.must(err)
		w.must(manifest.Install(w.ctx, w.Client, definitions))
		test(w)
	})
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// life is a manager at work.
type life struct {
	*manager.Manager
	w       *world
	stop    context.CancelFunc
	ended   chan error
	metrics manager.Metrics
}

func (w *world) start(o stock.Options) *life {
	w.Helper()
	return w.startOn(w.api.RESTConfig(), o)
}

func (w *world) startOn(config *rest.Config, o stock.Options) *life {
	w.Helper()
	l := &life{w: w, ended: make(chan error, 1), metrics: metrics.New()}
	o.Manager.Metrics = l.metrics
	ctx, stop := context.WithCancel(w.ctx)
	mgr, err := stock.NewManager(ctx, config, o)
	w.must(err)
	l.Manager, l.stop = mgr, stop
	go func() { l.ended <- mgr.Run(ctx) }()
	time.Sleep(time.Second)
	return l
}

func (l *life) end() {
	l.w.Helper()
	l.stop()
	l.w.must(<-l.ended)
}

// reconciles is how often a controller has reconciled, by its metric.
func (l *life) reconciles(controller string) (n int) {
	answer := httptest.NewRecorder()
	l.metrics.ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	for line := range strings.SplitSeq(answer.Body.String(), "\n") {
		if strings.HasPrefix(line, "controller_runtime_reconcile_total{") &&
			strings.Contains(line, fmt.Sprintf("controller=%q", controller)) {
			var count float64
			if _, err := fmt.Sscan(line[strings.LastIndexByte(line, ' ')+1:], &count); err != nil {
				l.w.Fatal(line, err)
			}
			n += int(count)
		}
	}
	return n
}

// settle lets enough time pass for everything but retries that have failed for long.
func (w *world) settle() { time.Sleep(2 * time.Minute) }

func (w *world) addCategory(name, prefix string, change ...func(*api.Category)) {
	w.Helper()
	c := &api.Category{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       api.CategorySpec{Prefix: prefix, Shelf: "A1"},
	}
	for _, f := range change {
		f(c)
	}
	w.must(w.Create(w.ctx, c))
}

func (w *world) addItem(name, category string, change ...func(*api.Item)) {
	w.Helper()
	i := &api.Item{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       api.ItemSpec{Category: category, Quantity: 1, UnitPrice: 10},
	}
	for _, f := range change {
		f(i)
	}
	w.must(w.Create(w.ctx, i))
}

func (w *world) item(name string) *api.Item {
	w.Helper()
	var i api.Item
	w.must(w.Get(w.ctx, client.ObjectKey{Namespace: "default", Name: name}, &i))
	return &i
}

func (w *world) category(name string) *api.Category {
	w.Helper()
	var c api.Category
	w.must(w.Get(w.ctx, client.ObjectKey{Namespace: "default", Name: name}, &c))
	return &c
}

func (w *world) label(item string) (*corev1.ConfigMap, error) {
	var cm corev1.ConfigMap
	err := w.Get(w.ctx, client.ObjectKey{Namespace: "default", Name: stock.LabelName(item)}, &cm)
	return &cm, err
}

func (w *world) removeItem(name string) {
	w.Helper()
	w.must(w.Delete(w.ctx, w.item(name)))
}

// shelved fails the test if the item is not on its shelf, with that SKU and a label that says so.
func (w *world) shelved(name, sku string) {
	w.Helper()
	i := w.item(name)
	if i.Status.Phase != api.Shelved || i.Status.SKU != sku ||
		!conditions.Is(i.Status.Conditions, conditions.Ready, metav1.ConditionTrue) {
		w.Errorf("%s: %+v, want it shelved as %s", name, i.Status, sku)
	}
	if l, err := w.label(name); err != nil || l.Data["sku"] != sku || l.Labels[stock.ItemLabel] != name ||
		!metav1.IsControlledBy(l, i) {
		w.Errorf("label of %s: %+v, %v", name, l, err)
	}
}

// stalled fails the test if an object is not stalled for that reason.
func (w *world) stalled(list []metav1.Condition, reason string) {
	w.Helper()
	if c := conditions.Get(list, conditions.Stalled); c == nil || c.Status != metav1.ConditionTrue ||
		c.Reason != reason {
		w.Errorf("conditions %+v, want stalled for %s", list, reason)
	}
}

// writes are the successful writes since the n-th, but for events.
func (w *world) writes(from int) (lines []string) {
	for _, e := range w.api.Audit().Writes()[from:] {
		if e.Resource != "events" {
			lines = append(lines,
				strings.TrimSpace(fmt.Sprintf("%s %s %s %s", e.Verb, e.Resource, e.Name, e.Subresource)))
		}
	}
	return lines
}

func (w *world) mark() int { return len(w.api.Audit().Writes()) }

// reasons are those of the events, sorted.
func (w *world) reasons() (all []string) {
	w.Helper()
	var list corev1.EventList
	w.must(w.List(w.ctx, &list))
	for _, e := range list.Items {
		all = append(all, e.InvolvedObject.Name+" "+e.Reason)
	}
	slices.Sort(all)
	return all
}

var errPrinter = errors.New("out of paper")
