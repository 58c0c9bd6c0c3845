package browser

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

var update = flag.Bool("update", false, "write the pictures in docs/images anew")

// patience is how long a page may take to show what it should.
const patience = time.Minute

// program returns the browser's program. The test is skipped if there is none.
func program(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("there is no chromium, chromium-browser or google-chrome; Debian's package is chromium")
	return ""
}

// tab is a page that is open in a browser.
type tab struct {
	t   *testing.T
	ctx context.Context
}

// open starts a browser with an empty page of a size. An error that a script on the page does not catch fails the test.
func open(t *testing.T, width, height int64) *tab {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program(t)), chromedp.NoSandbox,
		chromedp.WindowSize(int(width), int(height)))
	allocator, stop := chromedp.NewExecAllocator(t.Context(), options...)
	ctx, closeTab := chromedp.NewContext(allocator)
	var reader sync.WaitGroup
	t.Cleanup(func() {
		closeTab()
		stop()
		reader.Wait()
	})
	p := &tab{t, ctx}
	// The browser ends with the context of the first action, which must therefore have no limit of its own.
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(width, height)); err != nil {
		t.Fatal(err)
	}
	exceptions := chromedp.Events(ctx, runtime.ExceptionThrown)
	reader.Go(func() {
		for e, err := range exceptions {
			if err != nil {
				return // The browser has ended.
			}
			t.Errorf("the page has an error: %v", e.ExceptionDetails)
		}
	})
	return p
}

func (p *tab) run(actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		p.t.Fatalf("%v\n%s", err, p.text())
	}
}

// text is what the page shows, for messages.
func (p *tab) text() string {
	ctx, cancel := context.WithTimeout(p.ctx, 5*time.Second)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string](`document.body.innerText`))
	if err != nil {
		return err.Error()
	}
	return "The page shows:\n" + text
}

func (p *tab) visit(url string) {
	p.t.Helper()
	p.run(chromedp.Navigate(url))
}

// ask returns the value of an expression on a page.
func ask[T any](p *tab, expression string) T {
	p.t.Helper()
	return result(p, chromedp.Evaluate[T](expression))
}

// result returns the result of an action.
func result[T any](p *tab, action chromedp.Action[T]) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	value, err := chromedp.Run(ctx, action)
	if err != nil {
		p.t.Fatalf("%v\n%s", err, p.text())
	}
	return value
}

// do runs statements on a page.
func (p *tab) do(statements string) {
	p.t.Helper()
	ask[bool](p, "(() => { "+statements+"; return true; })()")
}

// until waits until an expression is true.
func (p *tab) until(expression string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	for {
		is, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("Boolean("+expression+")"))
		if is {
			return
		}
		if ctx.Err() != nil {
			p.t.Fatalf("%s did not become true (%v)\n%s", expression, err, p.text())
		}
		time.Sleep(20 * time.Millisecond) // The browser is another process, with a clock of its own.
	}
}

// shows waits until an element contains a text.
func (p *tab) shows(selector, text string) {
	p.t.Helper()
	p.until(fmt.Sprintf("[...document.querySelectorAll(%q)].some((e) => e.innerText.includes(%q))", selector, text))
}

// texts returns the texts of the elements.
func (p *tab) texts(selector string) []string {
	p.t.Helper()
	return ask[[]string](p, fmt.Sprintf("[...document.querySelectorAll(%q)].map((e) => e.innerText)", selector))
}

// click clicks the first element whose text begins with the words.
func (p *tab) click(selector, words string) {
	p.t.Helper()
	find := fmt.Sprintf("[...document.querySelectorAll(%q)].find((e) => e.innerText.startsWith(%q))", selector, words)
	p.until(find)
	p.do(find + ".click()")
}

// picture takes a picture of the page for the documentation, and writes it with -update. Otherwise the picture must be
// there.
func (p *tab) picture(name string, dark bool) {
	p.t.Helper()
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	p.scheme(scheme)
	png := result(p, chromedp.CaptureScreenshot())
	p.scheme("light")
	file := "../../../docs/images/" + name + ".png"
	if *update {
		if err := os.WriteFile(file, png, 0o644); err != nil {
			p.t.Fatal(err)
		}
		return
	}
	if kept, err := os.ReadFile(file); err != nil || !strings.HasPrefix(string(kept), "\x89PNG") || len(png) < 10000 {
		p.t.Errorf("%s: %v; go test -update in inspect/page/browser writes it", file, err)
	}
}

// scheme sets the colours that the reader prefers.
func (p *tab) scheme(name string) {
	p.t.Helper()
	_, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}},
	})
	if err != nil {
		p.t.Fatal(err)
	}
}

// fits checks that nothing is wider than the page.
func (p *tab) fits() {
	p.t.Helper()
	if wide := ask[int](p, "document.documentElement.scrollWidth - innerWidth"); wide > 0 {
		p.t.Errorf("the page is %d pixels wider than the window", wide)
	}
}

// readable checks that no visible text in an element is smaller than 12 pixels or has less contrast than 4.5, in either
// scheme. The text of a figure stands on the last shape below its middle.
func (p *tab) readable(within string) {
	p.t.Helper()
	for _, scheme := range []string{"dark", "light"} {
		p.scheme(scheme)
		for _, fault := range ask[[]string](p, `((within) => {
			const luminance = (colour) => {
				const [r, g, b] = colour.match(/[\d.]+/g).map((v) => v / 255)
					.map((v) => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
				return .2126 * r + .7152 * g + .0722 * b;
			};
			const below = (e) => {
				if (e.getBBox) {
					const box = e.getBBox(), middle = new DOMPoint(box.x + box.width / 2, box.y + box.height / 2);
					return getComputedStyle([...document.querySelectorAll("rect, polygon")]
						.filter((s) => getComputedStyle(s).fill !== "none" && s.isPointInFill(middle)).at(-1)).fill;
				}
				while (getComputedStyle(e).backgroundColor === "rgba(0, 0, 0, 0)") e = e.parentElement;
				return getComputedStyle(e).backgroundColor;
			};
			const texts = [...within.querySelectorAll("input")].map((e) => [e, "::placeholder", e.placeholder]);
			const nodes = document.createTreeWalker(within, NodeFilter.SHOW_TEXT);
			while (nodes.nextNode()) texts.push([nodes.currentNode.parentElement, "", nodes.currentNode.data]);
			return texts.filter(([e, , words]) => words.trim() && e.checkVisibility()).map(([e, part, words]) => {
				const style = getComputedStyle(e, part), size = parseFloat(style.fontSize);
				const [a, b] = [e.getBBox ? style.fill : style.color, below(e)].map(luminance);
				const contrast = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
				return size >= 12 && contrast >= 4.5 ? "" : size + " pixels, contrast " + contrast + ": " + words;
			}).filter(Boolean);
		})(document.querySelector(`+strconv.Quote(within)+`))`) {
			p.t.Errorf("%s, %s: %s", ask[string](p, "location.pathname"), scheme, fault)
		}
	}
}
