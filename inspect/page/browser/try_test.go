package browser

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/flyball-dev/flyball/cmd/flyball/demo"
)

// built is the folder of the playground.
const built = root + "/bin/book/try/"

// try opens the playground at a scenario, and waits until its process answers. It returns the address of the site, and
// what stops its server.
func try(t *testing.T, p *tab, scenario string) (url string, stop func()) {
	t.Helper()
	if _, err := os.Stat(built + "index.html"); err != nil {
		t.Fatalf("make playground has not run: %v", err)
	}
	url, stop = serveBook(t, root)
	p.visit(url + "try/index.html?scenario=" + scenario)
	p.shows("#connection", "Live")
	return url, stop
}

// command runs a command in the terminal, and waits until its output has a text.
func (p *tab) command(line, says string) {
	p.t.Helper()
	p.do(fmt.Sprintf(`
		document.querySelector(".out").replaceChildren();
		document.querySelector("#command").value = %q;
		document.querySelector(".terminal").requestSubmit()`, line))
	p.until(fmt.Sprintf(`document.querySelector(".out").textContent.includes(%q)`, says))
}

// TestTryScenarios plays each scenario to the end of its story.
func TestTryScenarios(t *testing.T) {
	p := open(t, 1280, 900)
	url, _ := try(t, p, "")
	for _, scenario := range demo.Scenarios() {
		p.visit(url + "try/index.html?scenario=" + scenario)
		if scenario != "endpoints" { // which is reached at once
			p.shows("#story li[aria-current=step]", scenario)
		}
		p.until(`document.querySelector("#tap .held li")`)
		if scenario == "rollout" {
			p.picture("playground", false)
		}
		p.click("#tap button", "Full speed")
		p.shows("#story .end", "steps: ")
		p.fits()
	}
	// A button starts another process in the same page.
	p.click("#try button", "Create")
	p.shows("#story li[aria-current=step]", "create")
	p.until(`document.querySelector("#tap .held li")`)
	p.visit(ask[string](p, `document.querySelector("#story a").href`))
	p.shows("h1", "Deployment")
	// A program that ends says why, and the words that follow do not take the place of the reason.
	p.visit(url + "try/index.html?scenario=nothing")
	p.command("get pods", "it must be one of create")
	p.shows("#try .problem", "it must be one of create")
}

// TestTryTerminal: commands print what kubectl prints, and values of objects are text.
func TestTryTerminal(t *testing.T) {
	p := open(t, 1280, 900)
	start := time.Now()
	url, _ := try(t, p, "")
	t.Logf("live after %s", time.Since(start).Round(time.Millisecond))
	for _, c := range []struct{ line, says string }{
		{"create deployment web --image=nginx:1.28 --replicas=3", "deployment.apps/web created"},
		{"rollout status deployment/web", "successfully rolled out"},
		{"get deployments", "web    3/3     3            3"},
		{"describe deployment web", "ScalingReplicaSet"},
		{"set image deployment/web nginx=nginx:1.29", "image updated"},
		{"rollout status deployment/web", "successfully rolled out"},
		{"rollout undo deployment/web", "rolled back"},
		{"scale deployment/web --replicas=5", "scaled"},
		{"get pods -o wide", "NOMINATED NODE"},
		{"logs deployment", "deployment"},
		{"delete deployment web", "deleted from default namespace"},
		{"get nothing", "the server doesn't have a resource type"},
	} {
		p.command(c.line, c.says)
	}
	// What follows ends with its button.
	p.command("get configmaps -A -w", "$ kubectl get")
	p.click(".terminal button", "Stop")
	p.shows(".out", "^C")

	const attack = `<img src=x onerror="window.attacked=1">`
	p.do(fmt.Sprintf(`document.querySelector("#manifest").value = %q`,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: hostile}, data: {a: '`+attack+`'}}`))
	p.command("apply -f -", "configmap/hostile created")
	p.command("describe configmap hostile", attack)
	p.do(`location.hash = "#/object/configmaps/default/hostile"`)
	p.shows("h1", "configmaps default/hostile")
	if ask[bool](p, `window.attacked === 1 || document.querySelectorAll("main img, .out img").length > 0`) {
		t.Error("the page has run what an object says")
	}

	// A reload begins anew.
	p.run(chromedp.Reload())
	p.shows("#connection", "Live")
	p.command("get configmaps hostile", `configmaps "hostile" not found`)

	// Another tab has a process of its own.
	other := open(t, 400, 800)
	other.visit(url + "try/index.html?scenario=")
	other.shows("#connection", "Live")
	p.command("create deployment mine --image=nginx", "created")
	other.command("get deployment mine", `"mine" not found`)
	other.fits()
	other.readable("#try")
	other.readable("#console")
}

// TestTryController: a controller of the reader's own runs with the others; one that never ends is stopped, and so is
// one that uses too much memory, and the page goes on.
func TestTryController(t *testing.T) {
	p := open(t, 1280, 900)
	try(t, p, "")
	p.until(`document.querySelector("#script").value !== ""`)
	p.do(`document.querySelectorAll("#console details").forEach((d) => d.open = true)`)
	p.command("create deployment web --image=nginx:1.28", "created")
	p.click("#console button", "Run")
	p.shows(".card", "yours")
	p.until(`!document.querySelector("#lost").offsetParent`)
	p.command("get configmap web-note -o yaml", "images: nginx:1.28")
	p.do(`location.hash = "#/object/configmaps/default/web-note"`)
	p.shows(".timeline .by", "yours")

	write := func(text string) {
		p.do(fmt.Sprintf(`document.querySelector("#script").value = %q`, text))
		p.click("#console button", "Run")
	}
	write("def reconcile(a, b):\n  oops()")
	p.shows("#console .problem", "line 2: undefined: oops")
	write("watches = 'apps/v1/Deployment'\ndef reconcile(a, b):\n  for i in range(1000000):\n    pass")
	p.command("logs -f must come to an end", "line 3: stopped after")
	write("watches = 'apps/v1/Deployment'\ndef reconcile(a, b):\n  x = 'x'\n  for i in range(1000):\n    x += x")
	p.command("logs -f of memory", "line 5: stopped because it uses more than 128 MB of memory")
	write("x = [str(n) * 1000000 for n in range(1000)]")
	p.shows("#console .problem", "line 1: stopped because it uses more than 128 MB of memory")
	p.command("get deployments", "web")
}

// TestTryLarge: 5,000 objects are applied while the page shows them, and no frame of the page takes more than 100 ms
// longer than it should.
func TestTryLarge(t *testing.T) {
	p := open(t, 1280, 900)
	try(t, p, "")
	p.measureFrames()
	p.do(`
		document.querySelector("#manifest").value = Array.from({length: 5000}, (_, n) =>
			"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: many-" + n).join("\n---\n")`)
	start := time.Now()
	p.do(`document.querySelector("#command").value = "apply -f -"; document.querySelector(".terminal").requestSubmit()`)
	for end := start.Add(10 * time.Minute); ; {
		if ask[bool](p, `document.querySelector(".out").textContent.includes("many-4999 created")`) {
			break
		}
		if time.Now().After(end) {
			t.Fatal(p.text())
		}
		time.Sleep(time.Second) // The browser is another process, with a clock of its own.
	}
	t.Logf("5,000 objects in %s, slowest frame %.0f ms, %d MB", time.Since(start).Round(time.Millisecond),
		ask[float64](p, "window.slowest"), p.megabytes())
	p.shows(".out", "created")
}

// measureFrames has window.slowest be the longest time between two frames in milliseconds, from now on.
func (p *tab) measureFrames() {
	p.do(`
		window.slowest = 0;
		let last = performance.now();
		const frame = (now) => {
			window.slowest = Math.max(window.slowest, now - last);
			last = now;
			requestAnimationFrame(frame);
		};
		requestAnimationFrame(frame)`)
}

// megabytes returns the memory of all processes that render pages, without what they share; 0 where that is not known.
func (p *tab) megabytes() (sum int) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		line, _ := os.ReadFile(file)
		if !strings.Contains(string(line), "--type=renderer") {
			continue
		}
		rollup, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "smaps_rollup"))
		for line := range strings.Lines(string(rollup)) {
			var kilobytes int
			if n, _ := fmt.Sscanf(line, "Pss: %d kB", &kilobytes); n == 1 {
				sum += kilobytes / 1000
			}
		}
	}
	return sum
}

// TestTryNumbers logs the numbers of the table in docs/playground.md. The first visit has nothing in a cache.
func TestTryNumbers(t *testing.T) {
	p := open(t, 1280, 900)
	start := time.Now()
	url, _ := try(t, p, "")
	for _, visit := range []string{"first visit", "second visit"} {
		live := time.Since(start)
		p.command("create deployment web --image=nginx:1.28", "created")
		p.command("rollout status deployment/web", "successfully rolled out")
		t.Logf("%s: live after %.1f s, first Pod ready after %.1f s, %d MB", visit, live.Seconds(),
			time.Since(start).Seconds(), p.megabytes())
		start = time.Now()
		p.visit(url + "try/index.html?scenario=")
		p.shows("#connection", "Live")
	}
	p.command("create deployment web --image=nginx:1.28 --replicas=10", "created")
	p.measureFrames()
	p.command("set image deployment/web nginx=nginx:1.29", "updated")
	p.command("rollout status deployment/web", "successfully rolled out")
	t.Logf("slowest frame of a rollout: %.0f ms", ask[float64](p, "window.slowest"))
}

// TestTryOffline: after the first visit, the page works without a network and by the keyboard alone.
func TestTryOffline(t *testing.T) {
	p := open(t, 1280, 900)
	_, stop := try(t, p, "")
	p.until(`navigator.serviceWorker.controller`)
	p.until(`!document.querySelector("#try .words").innerText`)
	stop()
	p.run(chromedp.Reload())
	p.shows("#connection", "Live")
	p.do(`document.querySelector("#command").focus()`)
	for _, key := range "get nodes" {
		p.run(chromedp.KeyEvent(string(key)))
	}
	p.run(chromedp.KeyEvent(kb.Enter))
	p.shows(".out", "Ready")
	p.run(chromedp.KeyEvent(kb.ArrowUp))
	if line := ask[string](p, `document.querySelector("#command").value`); line != "get nodes" {
		t.Errorf("the line before is %q", line)
	}
	p.readable("#try")
	p.readable("#console")
	if out := strings.Join(p.texts(".out"), ""); strings.Contains(out, "error") {
		t.Error(out)
	}
}
