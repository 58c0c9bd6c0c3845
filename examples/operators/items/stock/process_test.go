package stock_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/examples/operators/items/api"
	"github.com/flyball-dev/flyball/examples/operators/items/stock"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/manager/rbac"
)

// slowPrinter takes a second for a label, and knows what it does at once.
type slowPrinter struct {
	mu        sync.Mutex
	now, peak int
	busy      map[string]bool
	twice     []string
	printed   int
	cut       int // labels whose context ended meanwhile
}

func (p *slowPrinter) print(ctx context.Context, sku, _ string) error {
	p.mu.Lock()
	if p.busy == nil {
		p.busy = map[string]bool{}
	}
	if p.busy[sku] {
		p.twice = append(p.twice, sku)
	}
	p.busy[sku] = true
	p.now++
	p.peak = max(p.peak, p.now)
	p.mu.Unlock()
	time.Sleep(time.Second)
	p.mu.Lock()
	defer p.mu.Unlock()
	if ctx.Err() != nil {
		p.cut++
	}
	p.busy[sku] = false
	p.now--
	p.printed++
	return nil
}

// TestThreeWorkers: three items at once, never four, never one twice; and the work of each is one label.
func TestThreeWorkers(t *testing.T) {
	inWorld(t, func(w *world) {
		w.addCategory("tools", "TL")
		for i := range 20 {
			w.addItem(fmt.Sprintf("i%02d", i), "tools")
		}
		p := &slowPrinter{}
		l := w.start(stock.Options{Workers: 3, Print: p.print})
		w.settle()
		l.end()
		if p.peak != 3 || len(p.twice) != 0 || p.printed != 20 {
			t.Errorf("%d labels, %d at once, %q beside themselves", p.printed, p.peak, p.twice)
		}
		w.shelved("i19", "TL-0020")
	})
}

// TestStopFinishesLabels: labels that are being printed when the stop comes are finished and noted, by a context that
// is alive; no other is begun; the next process prints the rest, and none of those again.
func TestStopFinishesLabels(t *testing.T) {
	inWorld(t, func(w *world) {
		w.addCategory("tools", "TL")
		for i := range 10 {
			w.addItem(fmt.Sprintf("i%02d", i), "tools")
		}
		p := &slowPrinter{}
		l := w.start(stock.Options{Workers: 3, Print: p.print})
		time.Sleep(100 * time.Millisecond)
		p.mu.Lock()
		begun := p.printed + p.now
		p.mu.Unlock()
		l.end()
		if p.printed != begun || p.cut != 0 || begun == 0 || begun == 10 {
			t.Errorf("%d were begun at the stop, %d are printed, %d were cut off", begun, p.printed, p.cut)
		}
		l = w.start(stock.Options{Workers: 3, Print: p.print})
		w.settle()
		l.end()
		if p.printed != 10 {
			t.Errorf("%d labels were printed for 10 items", p.printed)
		}
		w.shelved("i09", "TL-0010")
	})
}

// TestTwoProcesses: without a lease, on caches that are behind, two of them work on the same objects for a while,
// which nobody should do. They meet conflicts; no number is given twice, and all comes out right.
func TestTwoProcesses(t *testing.T) {
	inWorld(t, func(w *world) {
		w.lag.Store(int64(30 * time.Millisecond))
		one, two := w.start(stock.Options{}), w.start(stock.Options{})
		w.addCategory("tools", "TL")
		for i := range 30 {
			w.addItem(fmt.Sprintf("i%02d", i), "tools")
			time.Sleep(time.Duration(i%7) * 5 * time.Millisecond)
		}
		time.Sleep(time.Hour)
		skus := map[string]bool{}
		for i := range 30 {
			name := fmt.Sprintf("i%02d", i)
			sku := w.item(name).Status.SKU
			w.shelved(name, sku)
			skus[sku] = true
		}
		if c := w.category("tools").Status; len(skus) != 30 || c.Issued != 30 || c.Items != 30 {
			t.Errorf("%d SKUs, category %+v", len(skus), c)
		}
		one.end()
		two.end()
	})
}

// TestRoleGrantsWhatIsCalled takes the controllers through everything that they do, and compares the requests with
// the role that is shipped: it grants no less and no more.
func TestRoleGrantsWhatIsCalled(t *testing.T) {
	recorder := rbac.NewRecorder()
	inWorld(t, func(w *world) { playEverything(w, recorder) })
	operator.CompareRoles(t, recorder)
}

// playEverything makes the controllers send each kind of request that they ever send.
func playEverything(w *world, recorder *rbac.Recorder) {
	config := rest.CopyConfig(w.api.RESTConfig())
	config.Wrap(recorder.Wrap)
	w.must(w.Create(w.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "items"}}))
	elect := manager.LeaderElection{Enabled: true, Namespace: "items", Name: "items-manager"}
	l := w.startOn(config, stock.Options{Manager: manager.Options{LeaderElection: elect}})
	w.addCategory("tools", "TL")
	w.addCategory("paint", "PT")
	w.addItem("hammer", "tools", func(i *api.Item) { i.Spec.RecountEvery = &metav1.Duration{Duration: time.Minute} })
	w.addItem("lost", "nowhere")
	w.settle()
	cm, err := w.label("hammer")
	w.must(err)
	cm.Data = nil
	w.must(w.Update(w.ctx, cm))
	w.settle()
	hammer := w.item("hammer")
	hammer.Spec.Quantity = 0
	w.must(w.Update(w.ctx, hammer)) // the second time that a count comes due: the event is counted, not made
	w.settle()
	hammer = w.item("hammer")
	hammer.Spec.Category = "paint"
	w.must(w.Update(w.ctx, hammer))
	w.settle()
	w.removeItem("hammer")
	w.must(w.Delete(w.ctx, w.category("tools")))
	w.settle()
	l.end()
}
