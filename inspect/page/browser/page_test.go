package browser

import (
	"context"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball"
	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/cmd/flyball/demo"
	"github.com/flyball-dev/flyball/cmd/flyball/learn"
	"github.com/flyball-dev/flyball/cmd/flyball/site"
	"github.com/flyball-dev/flyball/inspect"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/audit"
	"github.com/flyball-dev/flyball/localapi/auth"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/manager/builder"
	"github.com/flyball-dev/flyball/reconcile"
)

// play runs the demo until the test ends, and returns the address of its page.
func play(t *testing.T, o demo.Options) (url string) {
	t.Helper()
	shown, ended := make(chan string, 1), make(chan error, 1)
	o.Timeout, o.Page, o.Out, o.Book = time.Minute, "127.0.0.1:0", io.Discard, site.Handler(flyball.Docs)
	o.Shown = func(url string) { shown <- url }
	ctx, stop := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
	go func() { ended <- demo.Run(ctx, o) }()
	t.Cleanup(func() {
		stop()
		<-ended // It was stopped before its end, which is an error.
	})
	select {
	case url = <-shown:
	case err := <-ended:
		t.Fatal(err)
	}
	return url
}

// TestStory follows the demo on the page, until all is deleted again.
func TestStory(t *testing.T) {
	p := open(t, 1280, 900)
	p.visit(play(t, demo.Options{Speed: 2}))
	p.shows("#connection", "Live")
	for _, card := range []string{"deployments.apps", "replicasets.apps", "pods", "deployment-controller"} {
		p.shows(".card", card)
	}
	p.until(`[...document.querySelectorAll(".card")].some((c) => c.innerText.startsWith("pods") &&
		/\b([5-9]|1\d)\b/.test(c.innerText))`)
	p.until(`document.querySelectorAll(".ways path.active").length > 0`)
	p.picture("inspect-pipeline", false)
	p.shows(".well", "All is well")

	p.do(`location.hash = "#/object/deployments.apps/default/web"`)
	p.shows("h1", "deployments.apps default/web")
	p.shows(".timeline .stage", "Cache")
	p.until(`[...document.querySelectorAll(".timeline .what")].some((e) => e.innerText.includes("deleted"))`)
	if oldest := p.texts(".timeline tbody tr"); len(oldest) < 20 {
		t.Errorf("the timeline of the whole story has %d steps", len(oldest))
	}
	p.fits()
}

// TestNarrow: the page can be read in a small window, in each view.
func TestNarrow(t *testing.T) {
	p := open(t, 400, 800)
	url := play(t, demo.Options{Speed: 10})
	for _, view := range []string{"pipeline", "queues", "object", "caches", "object/deployments.apps/default/web"} {
		p.visit(url + "#/" + view)
		p.until(`document.querySelector("main h1") && document.querySelector("#connection").className === "live"`)
		p.fits()
	}
}

// TestSteps takes the rollout step by step, with a fault.
func TestSteps(t *testing.T) {
	p := open(t, 1280, 900)
	p.visit(play(t, demo.Options{Speed: 20, Step: true, Scenario: "rollout"}))
	p.shows("#tap .words", "held up")
	p.shows("#story li[aria-current=step]", "rollout")
	p.shows("#story", "3 of 7: roll out nginx:1.29\n5 of 5 available\nExpected: ")
	stages, lit := map[string]bool{}, map[string]bool{}
	for range 12 {
		// The oldest step is in the first row, which is another element for another step.
		p.until(`window.row = document.querySelector("#tap .held li")`)
		stages[ask[string](p, `window.row.querySelector(".chip").className`)] = true
		lit[ask[string](p, `document.querySelector("[data-held=next] i")?.innerText ?? ""`)] = true
		p.shows("#tap .held li:first-child .says", " See chapter ")
		if len(stages) == 3 {
			p.picture("inspect-step", false)
		}
		p.click("#tap button", "Next step")
		p.until(`document.querySelector("#tap .held li") !== window.row`)
	}
	if !stages["chip event"] || !stages["chip delta"] || !stages["chip key"] {
		t.Errorf("twelve steps were of these stages only: %v", stages)
	}
	if !lit["Reflector"] || !lit["Handlers"] || !lit["Workers"] {
		t.Errorf("twelve steps have lit these stages only: %v", lit)
	}
	p.do(`
		const fault = document.querySelector("#fault");
		fault.focus();
		fault.value = "conflict";
		fault.dispatchEvent(new Event("change"))`)
	p.click("#tap .modes button", "Full speed")
	p.shows("#tap .note", "conflict")
	p.shows("#tap .words", "Nothing is held up")
	p.until(`document.querySelector("#fault").value === ""`)
	p.do(`document.querySelector("#tap .modes ~ select").value = "3s"`)
	p.click("#tap .modes button", "Slow motion")
	p.shows("#tap .words", "Each step waits 3.0 s")
	p.run(chromedp.Reload())
	p.until(`document.querySelector("#tap .modes ~ select")?.value === "3s"`)
	p.click("#tap .modes button", "Full speed")
	p.do(`location.hash = "#/object/deployments.apps/default/web"`)
	p.until(`document.querySelectorAll(".timeline tr.failed").length > 0`)
	p.picture("inspect-object", true)
	p.shows("#story .end", "7 steps: ")
	p.shows("#story .end", "Read on in chapter 9, chapter 10, chapter 11. Then build the parts")
	p.visit(ask[string](p, `document.querySelector("#story .end a").href`))
	p.shows("h1", "Reading your own writes")
}

// world is a manager with a controller of ConfigMaps, whose page can be visited.
type world struct {
	t     *testing.T
	api   *localapi.Test
	log   *audit.Log
	users kubernetes.Interface
	url   string
}

const controllers = "controllers"

// start runs the manager at an address until stop is called.
func (w *world) start(address string) (stop func()) {
	w.t.Helper()
	mgr, err := manager.New(w.api.RESTConfigFor(auth.User{Name: controllers, Groups: []string{"system:masters"}}),
		manager.Options{DebugAddr: address, Inspect: inspect.New(inspect.Options{})})
	if err != nil {
		w.t.Fatal(err)
	}
	c := mgr.GetClient()
	err = builder.ControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Complete(reconcile.Func[reconcile.Request](
		func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
			var cm corev1.ConfigMap
			if err := c.Get(ctx, req.NamespacedName, &cm); err != nil || cm.Data["seen"] == cm.Data["asked"] {
				return reconcile.Result{}, client.IgnoreNotFound(err)
			}
			cm.Data["seen"] = cm.Data["asked"]
			return reconcile.Result{}, c.Update(ctx, &cm)
		}))
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(klog.NewContext(w.t.Context(), klog.Logger{}))
	ended := make(chan error, 1)
	go func() { ended <- mgr.Run(ctx) }()
	if err := mgr.Informers().WaitForSync(ctx); err != nil {
		w.t.Fatalf("%v: %v", err, <-ended)
	}
	w.url = fmt.Sprintf("http://%s/inspect/", mgr.DebugAddr())
	return func() {
		cancel()
		if err := <-ended; err != nil {
			w.t.Error(err)
		}
	}
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, log: &audit.Log{Limit: 10000}}
	w.api = localapi.NewTestWith(t, localapi.Options{Audit: w.log})
	w.users = kubernetes.NewForConfigOrDie(w.api.RESTConfig())
	return w
}

// put creates or updates a ConfigMap.
func (w *world) put(name, asked string, annotations map[string]string) {
	w.t.Helper()
	configMaps := w.users.CoreV1().ConfigMaps("default")
	cm := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations}, Data: map[string]string{"asked": asked},
	}
	_, err := configMaps.Create(w.t.Context(), cm, metav1.CreateOptions{})
	if err != nil {
		_, err = configMaps.Update(w.t.Context(), cm, metav1.UpdateOptions{})
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// TestTimeline compares an object's timeline with the server's log and its journal, step by step.
func TestTimeline(t *testing.T) {
	program(t)
	w := newWorld(t)
	defer w.start("127.0.0.1:0")()
	p := open(t, 1280, 900)
	p.visit(w.url + "#/object/configmaps/default/one")
	for _, asked := range []string{"a", "b", "c"} {
		w.put("one", asked, nil)
		p.until(fmt.Sprintf(`[...document.querySelectorAll(".details")].some((e) =>
			/seen/.test(e.innerText) && e.innerText.includes(%q))`, `"`+asked+`"`))
	}
	var wrote []string
	for _, e := range w.log.Entries(func(e audit.Entry) bool {
		return e.User == controllers && e.Resource == "configmaps" && e.Mutates()
	}) {
		wrote = append(wrote, fmt.Sprintf("%s %s %s/%s: %d", e.Verb, e.Resource, e.Namespace, e.Name, e.Code))
	}
	p.click(".object button", "Oldest first")
	var writes, changes []string
	for _, row := range p.texts(".timeline tbody tr") {
		cells := strings.Split(row, "\t")
		switch what := cells[len(cells)-1]; {
		case strings.Contains(row, "Write"):
			writes = append(writes, regexp.MustCompile(`\w+ configmaps default/one: \d+`).FindString(what))
		case strings.Contains(row, "Cache"):
			changes = append(changes, regexp.MustCompile(`\w+: version \d+`).FindString(what))
		}
	}
	if diff := cmp.Diff(wrote, writes); diff != "" {
		t.Errorf("writes (-log of the server +page):\n%s", diff)
	}
	var journal []string
	changed, _, err := w.api.Changes(0)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range changed {
		if c.Resource.Resource != "configmaps" || c.Name != "one" {
			continue
		}
		event := "updated"
		if c.Previous == nil {
			event = "added"
		}
		journal = append(journal, fmt.Sprintf("%s: version %d", event, c.Revision))
	}
	if diff := cmp.Diff(journal, changes); diff != "" {
		t.Errorf("changes (-journal +page):\n%s", diff)
	}
}

// TestHostileValues: values of objects are shown as text, and Secrets' data is not shown.
func TestHostileValues(t *testing.T) {
	program(t)
	w := newWorld(t)
	defer w.start("127.0.0.1:0")()
	const attack = `"><img src=x onerror="window.attacked=1"><script>window.attacked=1</script>`
	w.put("hostile", attack, map[string]string{"note": attack})
	p := open(t, 1280, 900)
	for _, view := range []string{"object/configmaps/default/hostile", "caches/configmaps/default/hostile"} {
		p.visit(w.url + "#/" + view)
		p.shows("main", "<img src=x onerror=")
	}
	p.visit(w.url + "#/object/" + "%3Cimg%20src%3Dx%20onerror%3D%22window.attacked%3D1%22%3E/default/x")
	p.shows("main", "<img src=x")
	if ask[bool](p, "window.attacked === 1 || document.querySelectorAll('main img, main script').length > 0") {
		t.Error("the page has run what an object says")
	}
	// The policy holds even if the page had a hole.
	p.do(`
		const script = document.createElement("script");
		try {
			script.textContent = "window.attacked = 2";
			document.body.append(script);
		} catch {
			// The policy asks for trusted types, too.
		}`)
	if ask[bool](p, "window.attacked === 2") {
		t.Error("the content security policy lets a script in the page run")
	}
}

// TestReconnect: the page says that the process has gone, and goes on with the next one at the same address.
func TestReconnect(t *testing.T) {
	program(t)
	w := newWorld(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	stop := w.start(address)
	w.put("one", "a", nil)
	p := open(t, 1280, 900)
	p.visit(w.url + "#/object/configmaps/default/one")
	p.shows(".timeline", "Write")
	stop()
	p.shows("#lost", "The connection is lost")
	defer w.start(address)()
	p.shows("#connection", "Live")
	p.until(`document.querySelector("#lost").hidden`)
	p.until(`document.querySelector(".timeline").innerText.includes("by the first list")`)
	if rows := p.texts(".timeline .stage"); slices.Contains(rows, "Write") {
		t.Errorf("the page still shows the steps of the process before: %q", rows)
	}
}

// root is the folder of the repository.
const root = "../../.."

// serveBook serves the site until the test ends, or stop is called, and returns its address. It is that of a checkout,
// with the playground if that was built, or of this binary if dir is empty.
func serveBook(t *testing.T, dir string) (url string, stop func()) {
	t.Helper()
	told, out := io.Pipe()
	ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
	ended := make(chan error, 1)
	go func() { ended <- learn.Run(ctx, learn.Options{Address: "127.0.0.1:0", Dir: dir, Out: out}) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	line := make([]byte, 100)
	n, err := told.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile(`http://\S+`).FindString(string(line[:n])), stop
}

// TestReading: the site can be read in a wide and in a narrow window, in light and in dark colours, and the keyboard
// opens what is folded.
func TestReading(t *testing.T) {
	program(t)
	url, _ := serveBook(t, "")
	for width, height := range map[int64]int64{1280: 900, 400: 800} {
		narrow := width == 400
		p := open(t, width, height)
		for _, page := range []string{"index", "glossary", "slides", "03-reflector"} {
			p.visit(url + "docs/book/" + page + ".html")
			p.do(`document.querySelectorAll("main details").forEach((d) => d.open = true)`)
			p.fits()
			p.readable(":root")
			if ask[bool](p, `document.querySelector("nav li a").checkVisibility()`) == narrow {
				t.Errorf("%s, %d pixels: the pages are in the wrong state", page, width)
			}
			if narrow && ask[bool](p, `[...document.images].some((i) => i.width < i.naturalWidth)`) {
				t.Errorf("%s: a figure is smaller than it was drawn", page)
			}
		}
		p.do(`document.querySelector(".caption").scrollIntoView()`)
		p.picture(map[bool]string{false: "book-wide", true: "book-narrow"}[narrow], narrow)
		p.do(`document.querySelector("main a:has(> img)").focus()`)
		p.run(chromedp.KeyEvent(kb.Enter))
		p.until(`document.querySelector("dialog img")?.checkVisibility()`)
		p.run(chromedp.KeyEvent(kb.Escape))
		p.until(`!document.querySelector("dialog").open`)
		if narrow {
			p.do(`document.querySelector("#search").focus()`)
			p.run(chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Enter))
			p.until(`document.querySelector("nav li a").checkVisibility()`)
			continue
		}
		figures, err := filepath.Glob("../../../docs/book/images/*.svg")
		if err != nil || len(figures) == 0 {
			t.Fatalf("the book has no figures: %v", err)
		}
		for _, figure := range figures {
			p.visit(url + strings.TrimPrefix(figure, "../../../"))
			p.readable(":root")
		}
	}
}

// TestLearn: the site's search finds a chapter, and the button plays the demo.
func TestLearn(t *testing.T) {
	p := open(t, 1280, 900)
	url, _ := serveBook(t, "")
	p.visit(url)
	p.shows("h1", "The book: how a Kubernetes controller works, stage by stage")
	p.until(`!document.querySelector("#search").disabled`)
	p.do(`
		const field = document.querySelector("#search");
		field.value = "fair queue";
		field.dispatchEvent(new Event("input"))`)
	p.shows("#found a", "7. The work queue")
	p.click("#found a", "7. The work queue")
	p.shows("h1", "7. The work queue")
	p.fits()

	// A button opens the page of a demo, in a tab of its own for a reader and in this one for us.
	p.until(`document.querySelector("form.watch")`)
	p.do(`
		const form = document.querySelector("form.watch");
		form.target = "_self";
		form.requestSubmit()`)
	p.until(`location.pathname === "/inspect/"`)
	p.shows("#tap .words", "held up")
}

// TestLoad: with 100,000 objects and as many events as this machine makes, up to 10,000 a second, the page stays at
// most three seconds behind and answers, and the caches are not behind when the events end.
func TestLoad(t *testing.T) {
	program(t)
	const objects, rate, seconds = 100_000, 10_000, 10
	w := newWorld(t)
	seed := make([]runtime.Object, objects)
	for n := range seed {
		seed[n] = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("load-", n)}}
	}
	if err := w.api.Seed(t.Context(), seed...); err != nil {
		t.Fatal(err)
	}
	defer w.start("127.0.0.1:0")()
	p := open(t, 1280, 900)
	p.visit(w.url)
	p.shows(".card", "100,000")

	start := time.Now()
	var sent atomic.Int64
	var writers sync.WaitGroup
	for writer := range 4 {
		writers.Go(func() {
			for n := writer; time.Since(start) < seconds*time.Second; n += 4 {
				if ahead := time.Duration(n)*time.Second/rate - time.Since(start); ahead > 0 {
					time.Sleep(ahead) // Paces the load.
				}
				cm := seed[n%objects].DeepCopyObject().(*corev1.ConfigMap)
				cm.Labels = map[string]string{"round": fmt.Sprint(n)}
				_, err := w.users.CoreV1().ConfigMaps("default").Update(t.Context(), cm, metav1.UpdateOptions{})
				if err != nil {
					t.Error(err)
					return
				}
				sent.Add(1)
			}
		})
	}
	slowest := time.Duration(0)
	for time.Since(start) < (seconds-1)*time.Second {
		asked := time.Now()
		for _, view := range []string{"queues", "caches", "object/configmaps/default/load-1", "pipeline"} {
			p.do(fmt.Sprintf(`location.hash = "#/%s"`, view))
			p.until(`document.querySelector("main h1")`)
		}
		slowest = max(slowest, time.Since(asked))
		p.until(`document.querySelector("#connection").className === "live"`)
	}
	writers.Wait()
	took := time.Since(start)
	ended := time.Now()
	p.do(`location.hash = "#/caches"`)
	last := fmt.Sprint(sent.Load() + objects)
	p.until(fmt.Sprintf(`[...document.querySelectorAll("main td")].some((e) => Number(e.innerText) >= %s)`, last))
	behind := time.Since(ended)
	t.Logf("%d events in %s, %.0f a second; four views took at most %s; the page had the last version %s after it",
		sent.Load(), took.Round(time.Millisecond), float64(sent.Load())/took.Seconds(), slowest, behind)
	if slowest > 3*time.Second || behind > 3*time.Second {
		t.Errorf("four views took up to %s, and the page was %s behind", slowest, behind)
	}
}
