package chapter02

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ours "github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/docs/book/internal/book"
	"github.com/flyball-dev/flyball/localapi"
)

const (
	page = "02-list-and-watch"
	// later is the chapter that shows the rest of the protocol, when its readers know what it is for.
	later = "03-reflector"
	// manager stands in each object. Otherwise it would be the name of the test's file.
	manager = "reader"
)

// A world is a server in a bubble, and what was said so far.
type world struct {
	*localapi.Test
	t     *testing.T
	trace strings.Builder
}

// inWorld runs a scenario in virtual time on a server of its own. It returns the trace.
func inWorld(t *testing.T, o localapi.Options, scenario func(w *world)) string {
	t.Helper()
	var trace string
	synctest.Test(t, func(t *testing.T) {
		o.Rand = rand.NewPCG(1, 2)
		w := &world{Test: localapi.NewTestWith(t, o), t: t}
		scenario(w)
		trace = w.trace.String()
	})
	return trace
}

// client returns the chapter's client of a resource.
func (w *world) client(resource string) client {
	config := w.RESTConfig()
	return client{
		http: &http.Client{Transport: config.Transport},
		url:  config.Host + "/api/v1/namespaces/default/" + resource,
	}
}

// writer returns a client that writes objects as the field manager.
func (w *world) writer() *ours.Cluster {
	c, err := ours.New(w.RESTConfig(), ours.Options{FieldManager: manager})
	w.must(err)
	return c
}

func (w *world) say(format string, args ...any) { fmt.Fprintf(&w.trace, format+"\n", args...) }

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// create creates a Pod whose label app is the given one, and returns its version.
func (w *world) create(name, app string) string {
	w.t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"app": app}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "nginx:1.28"}}},
	}
	w.must(w.writer().Create(w.t.Context(), pod))
	return pod.ResourceVersion
}

// label sets the label app of a Pod.
func (w *world) label(name, app string) string {
	w.t.Helper()
	c, pod := w.writer(), &corev1.Pod{}
	w.must(c.Get(w.t.Context(), ours.ObjectKey{Namespace: "default", Name: name}, pod))
	pod.Labels["app"] = app
	w.must(c.Update(w.t.Context(), pod))
	return pod.ResourceVersion
}

func (w *world) delete(name string) {
	w.t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	w.must(w.writer().Delete(w.t.Context(), pod))
}

// setting creates or changes the ConfigMap "settings", and returns its version.
func (w *world) setting(value string) string {
	w.t.Helper()
	c, settings := w.writer(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "settings"}, Data: map[string]string{"colour": value},
	}
	err := c.Update(w.t.Context(), settings)
	if err != nil {
		err = c.Create(w.t.Context(), settings)
	}
	w.must(err)
	return settings.ResourceVersion
}

// names returns the names of a list.
func names(list object) string {
	all := make([]string, 0, len(list.Items))
	for _, o := range list.Items {
		all = append(all, o.Metadata.Name)
	}
	return strings.Join(all, " ")
}

// line words an event.
func line(e event) string {
	words := []string{e.Type, e.Object.Metadata.Name, e.Object.Metadata.ResourceVersion}
	if e.Object.Metadata.Name == "" {
		words = slices.Delete(words, 1, 2)
	}
	if e.Object.Metadata.Annotations[metav1.InitialEventsAnnotationKey] == "true" {
		words = append(words, metav1.InitialEventsAnnotationKey)
	}
	return strings.Join(words, " ")
}

// query makes the query of a request: "limit=2&continue=…".
func query(text string) url.Values {
	values, err := url.ParseQuery(text)
	if err != nil {
		panic(err)
	}
	return values
}

// TestChapter02Gap: a watch that does not begin where the list was taken loses a deletion.
func TestChapter02Gap(t *testing.T) {
	var b strings.Builder
	for _, design := range []struct {
		name string
		run  func(m *mirror, ctx context.Context, c client, meanwhile func()) error
		lost bool
	}{
		{"a list, and then a watch", (*mirror).listThenWatch, true},
		{"a list, and a watch from the version of the list", (*mirror).watchFromList, false},
	} {
		b.WriteString(inWorld(t, localapi.Options{}, func(w *world) {
			w.create("web-1", "web")
			w.create("web-2", "web")
			w.say("%s", design.name)
			m := &mirror{}
			ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
			defer cancel()
			err := design.run(m, ctx, w.client("pods"), func() {
				w.say("  it has listed %s, at version %s", strings.Join(slices.Sorted(maps.Keys(m.objects)), " "),
					m.position)
				w.delete("web-1")
				w.create("web-3", "web")
				w.say("  web-1 is deleted, web-3 is created, and then the watch begins")
			})
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the watch ended with %v", err)
			}
			have := strings.Join(slices.Sorted(maps.Keys(m.objects)), " ")
			all, err := w.client("pods").list(w.t.Context(), query(""))
			w.must(err)
			w.say("  a minute later the mirror has %s, the server has %s", have, names(all))
			if lost := have != names(all); lost != design.lost {
				t.Errorf("%s: the mirror has %s", design.name, have)
			}
		}))
	}
	book.Trace(t, page, b.String())
}

// TestChapter02Versions: all resources share one counter, and a list has the newest value of it.
func TestChapter02Versions(t *testing.T) {
	var rows [][4]string
	inWorld(t, localapi.Options{}, func(w *world) {
		row := func(did, version string) {
			pods, err := w.client("pods").list(w.t.Context(), query(""))
			w.must(err)
			settings, err := w.client("configmaps").list(w.t.Context(), query(""))
			w.must(err)
			rows = append(rows,
				[4]string{did, version, pods.Metadata.ResourceVersion, settings.Metadata.ResourceVersion})
		}
		row("create the Pod `web-1`", w.create("web-1", "web"))
		row("create the ConfigMap `settings`", w.setting("red"))
		row("change `settings`", w.setting("blue"))
		row("change `web-1`", w.label("web-1", "db"))
		w.delete("web-1")
		row("delete `web-1`", "")
	})
	table := "| what happens | version of the object | of a list of Pods | of a list of ConfigMaps |\n" +
		"|---|---|---|---|\n"
	for i, r := range rows {
		if r[2] != r[3] || r[1] != "" && r[1] != r[2] || i > 0 && r[2] <= rows[i-1][2] {
			t.Errorf("it is not one counter: %v", r)
		}
		if r[1] == "" {
			r[1] = "gone"
		}
		table += fmt.Sprintf("| %s | %s | %s | %s |\n", r[0], r[1], r[2], r[3])
	}
	book.Block(t, page, table)
}

// frames watches until everything is idle, and returns the events.
func (w *world) frames(c client, from string) []event {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	defer cancel()
	time.AfterFunc(time.Millisecond, cancel)
	var all []event
	if err := c.watch(ctx, query(from), func(e event) { all = append(all, e) }); !errors.Is(err, context.Canceled) {
		w.t.Errorf("the watch ended with %v", err)
	}
	return all
}

// TestChapter02Selector: what stops matching a selector is reported as deleted.
func TestChapter02Selector(t *testing.T) {
	type write struct {
		does string
		do   func()
	}
	table := "| what happens | a watch of all Pods | a watch of `app=web` |\n|---|---|---|\n"
	deleted := 0
	inWorld(t, localapi.Options{}, func(w *world) {
		for _, write := range []write{
			{"`web-1` is created with `app: web`", func() { w.create("web-1", "web") }},
			{"its label becomes `app: db`", func() { w.label("web-1", "db") }},
			{"its label becomes `app: cache`", func() { w.label("web-1", "cache") }},
			{"its label becomes `app: web` again", func() { w.label("web-1", "web") }},
			{"it is deleted", func() { w.delete("web-1") }},
		} {
			now, err := w.client("pods").list(w.t.Context(), query(""))
			w.must(err)
			write.do()
			table += "| " + write.does
			from := "resourceVersion=" + now.Metadata.ResourceVersion
			for _, q := range []string{from, from + "&labelSelector=app%3Dweb"} {
				var cell []string
				for _, e := range w.frames(w.client("pods"), q) {
					cell = append(cell, "`"+line(e)+"`")
					if e.Type == "DELETED" {
						deleted++
					}
				}
				table += " | " + strings.Join(cell, ", ")
			}
			table += " |\n"
		}
	})
	if deleted != 3 {
		t.Errorf("%d events are DELETED, want one more with the selector", deleted)
	}
	book.Block(t, page, table)
}

// TestChapter02Pages: all pages are of one version, whatever happens between them.
func TestChapter02Pages(t *testing.T) {
	trace := inWorld(t, localapi.Options{}, func(w *world) {
		c := w.client("pods")
		for n := 1; n <= 5; n++ {
			w.create(fmt.Sprintf("web-%d", n), "web")
		}
		var listed []string
		version, next := "", ""
		for n := 1; n == 1 || next != ""; n++ {
			q := query("limit=2")
			if next != "" {
				q.Set("continue", next)
			}
			p, err := c.list(w.t.Context(), q)
			w.must(err)
			w.say("GET pods?limit=2%s", map[bool]string{true: "&continue=…"}[next != ""])
			w.say("    version %s: %s", p.Metadata.ResourceVersion, names(p))
			if next = p.Metadata.Continue; next != "" {
				token, err := base64.RawURLEncoding.DecodeString(next)
				w.must(err)
				w.say("    continue: %s", token)
			}
			if version != "" && version != p.Metadata.ResourceVersion {
				t.Errorf("page %d is of version %s, the first of %s", n, p.Metadata.ResourceVersion, version)
			}
			version, listed = p.Metadata.ResourceVersion, append(listed, names(p))
			if n == 1 {
				w.say("meanwhile: web-3 is deleted, web-6 is created")
				w.delete("web-3")
				w.create("web-6", "web")
			}
		}
		if all := strings.Join(listed, " "); all != "web-1 web-2 web-3 web-4 web-5" {
			t.Errorf("the pages have %s", all)
		}
		w.say("GET pods?watch=true&resourceVersion=%s", version)
		for _, e := range w.frames(c, "resourceVersion="+version) {
			w.say("    %s", line(e))
		}
	})
	book.Trace(t, page, trace)
}

// TestChapter02Gone: two forms of one answer.
func TestChapter02Gone(t *testing.T) {
	trace := inWorld(t, localapi.Options{}, func(w *world) {
		c := w.client("pods")
		old := w.create("web-1", "web")
		for n := 2; n <= 4; n++ {
			w.create(fmt.Sprintf("web-%d", n), "web")
		}
		first, err := c.list(w.t.Context(), query("limit=2"))
		w.must(err)
		w.say("the first page of a list has version %s", first.Metadata.ResourceVersion)
		w.create("web-5", "web")
		w.must(w.Compact(w.t.Context()))
		w.say("some minutes later the server forgets its history")
		for _, q := range []string{
			"limit=2&continue=" + first.Metadata.Continue, "watch=true&resourceVersion=" + old,
		} {
			w.say("GET pods?%s", strings.ReplaceAll(q, first.Metadata.Continue, "…"))
			answer, err := c.http.Get(c.url + "?" + q) //nolint:noctx // Its answer ends at once.
			w.must(err)
			text, err := io.ReadAll(answer.Body)
			w.must(errors.Join(err, answer.Body.Close()))
			w.say("    HTTP/1.1 %s", answer.Status)
			w.say("    %s", abridge(string(text)))
			if !strings.Contains(string(text), `"code":410`) {
				t.Errorf("the answer is not 410: %s", text)
			}
		}
		if err := c.watch(w.t.Context(), query("resourceVersion="+old), func(event) {}); !errors.Is(err, errGone) {
			t.Errorf("the client returns %v", err)
		}
		all, err := c.list(w.t.Context(), query(""))
		w.must(err)
		w.say("GET pods\n    version %s: %s", all.Metadata.ResourceVersion, names(all))
	})
	book.Trace(t, page, trace)
}

var needless = regexp.MustCompile(`"kind":"Status","apiVersion":"v1",|"metadata":{},|"status":"Failure",`)

var longWords = regexp.MustCompile(`"(continue|message)":"([^"]{33})[^"]+"`)

// abridge cuts long words of JSON, and leaves out what the chapter does not need.
func abridge(text string) string {
	return longWords.ReplaceAllString(needless.ReplaceAllString(strings.TrimSpace(text), ""), `"$1":"$2…"`)
}

// TestChapter02Stream: a list as the beginning of a watch.
func TestChapter02Stream(t *testing.T) {
	trace := inWorld(t, localapi.Options{BookmarkInterval: -1}, func(w *world) {
		for n := 1; n <= 3; n++ {
			w.create(fmt.Sprintf("web-%d", n), "web")
		}
		w.label("web-1", "db")
		const q = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
		w.say("GET pods?watch=true&%s", q)
		ctx, cancel := context.WithCancel(w.t.Context())
		time.AfterFunc(time.Second, func() { w.delete("web-3") })
		time.AfterFunc(2*time.Second, cancel)
		began, end := time.Now(), false
		err := w.client("pods").watch(ctx, query(q), func(e event) {
			w.say("%v  %s", time.Since(began), line(e))
			end = end || e.Object.Metadata.Annotations[metav1.InitialEventsAnnotationKey] == "true"
		})
		if !errors.Is(err, context.Canceled) || !end {
			t.Errorf("%v, the end of the list came: %v", err, end)
		}
	})
	book.Trace(t, later, trace)
}

// TestChapter02Sizes: the largest piece that the server and the client must have in memory at once.
func TestChapter02Sizes(t *testing.T) {
	const pods = 500
	table := "| how 500 Pods are fetched | requests | largest piece |\n|---|---|---|\n"
	inWorld(t, localapi.Options{}, func(w *world) {
		c := w.client("pods")
		for n := range pods {
			w.create(fmt.Sprintf("web-%03d", n), "web")
		}
		var largest []int
		for _, limit := range []int{0, 100} {
			most, requests, next := 0, 0, ""
			for requests == 0 || next != "" {
				body, err := c.get(w.t.Context(), query(fmt.Sprintf("limit=%d&continue=%s", limit, next)))
				w.must(err)
				text, err := io.ReadAll(body)
				w.must(errors.Join(err, body.Close()))
				most, requests = max(most, len(text)), requests+1
				next = ""
				if m := regexp.MustCompile(`^[^{]*{[^{]*{[^}]*"continue":"([^"]+)"`).FindSubmatch(text); m != nil {
					next = string(m[1])
				}
			}
			how := fmt.Sprintf("in pages of %d", limit)
			if limit == 0 {
				how = "in one answer"
			}
			table += fmt.Sprintf("| %s | %d | %s |\n", how, requests, size(most))
			largest = append(largest, most)
		}
		ctx, cancel := context.WithCancel(w.t.Context())
		defer cancel()
		time.AfterFunc(time.Second, cancel)
		body, err := c.get(ctx, query(
			"watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"))
		w.must(err)
		text, _ := io.ReadAll(body)
		most, frames := 0, 0
		for frame := range strings.Lines(string(text)) {
			most, frames = max(most, len(frame)), frames+1
		}
		if frames != pods+1 || most*50 > largest[1] {
			t.Errorf("%d frames of at most %d bytes; a list has pieces of %v bytes", frames, most, largest)
		}
		table += fmt.Sprintf("| as a stream | 1 | %s |\n", size(most))
	})
	book.Block(t, later, table)
}

// size words a number of bytes.
func size(n int) string {
	switch {
	case n >= 1_000_000:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	case n >= 10_000:
		return fmt.Sprintf("%.0f KB", float64(n)/1e3)
	default:
		return fmt.Sprintf("%.1f KB", float64(n)/1e3)
	}
}

// TestChapter02Ages tries what a version in a request means.
func TestChapter02Ages(t *testing.T) {
	table := "| the request | asks for | the answer |\n|---|---|---|\n"
	inWorld(t, localapi.Options{}, func(w *world) {
		c := w.client("pods")
		old := w.create("web-1", "web")
		w.create("web-2", "web")
		now, err := c.list(w.t.Context(), query(""))
		w.must(err)
		for _, request := range []struct{ shown, meaning, query string }{
			{"list", "the newest state", ""},
			{"list, version 0", "any state that is at hand", "resourceVersion=0"},
			{
				"list, version $old, `NotOlderThan`", "version $old or newer",
				"resourceVersion=$old&resourceVersionMatch=NotOlderThan",
			},
			{"list, version $old, `Exact`", "version $old", "resourceVersion=$old&resourceVersionMatch=Exact"},
			{
				"list, version 99, `NotOlderThan`", "what nobody has written yet",
				"resourceVersion=99&resourceVersionMatch=NotOlderThan",
			},
			{"watch", "all objects, then the changes", "watch"},
			{"watch, version 0", "the same, of any age", "watch&resourceVersion=0"},
			{"watch, version $old", "the changes after it", "watch&resourceVersion=$old"},
			{"watch, version $now", "the changes after it", "watch&resourceVersion=$now"},
		} {
			fill := strings.NewReplacer("$old", old, "$now", now.Metadata.ResourceVersion)
			q := query(fill.Replace(request.query))
			answer, began := "", time.Now()
			if q.Has("watch") {
				for _, e := range w.frames(c, q.Encode()) {
					answer += ", `" + line(e) + "`"
				}
				if answer = strings.TrimPrefix(answer, ", "); answer == "" {
					answer = "nothing yet"
				}
			} else if list, err := c.list(w.t.Context(), q); err != nil {
				answer = fmt.Sprintf("after %v: %v", time.Since(began), err)
			} else {
				answer = fmt.Sprintf("version %s: %s", list.Metadata.ResourceVersion, names(list))
			}
			table += fill.Replace(fmt.Sprintf("| %s | %s | %s |\n", request.shown, request.meaning, answer))
		}
	})
	for _, want := range []string{"`Exact` | version 11 | version 11: web-1 |", "504", "nothing yet"} {
		if !strings.Contains(table, want) {
			t.Errorf("no answer has %q", want)
		}
	}
	book.Block(t, later, table)
}
