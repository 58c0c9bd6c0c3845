package inspect_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/inspect"
	"github.com/flyball-dev/flyball/inspect/tap"
	"github.com/flyball-dev/flyball/internal/pipeview"
	"github.com/flyball-dev/flyball/internal/trace"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/manager/builder"
	"github.com/flyball-dev/flyball/reconcile"
)

// serve returns the answer to a request with the given method, path and headers.
func serve(h http.Handler, method, path string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(context.Background(), method, path, nil)
	r.Host = "127.0.0.1:6060"
	for n := 0; n < len(headers); n += 2 {
		if headers[n] == "Host" {
			r.Host = headers[n+1]
			continue
		}
		r.Header.Set(headers[n], headers[n+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// idleHandler returns the handler of a manager that does not run.
func idleHandler(t *testing.T) http.Handler {
	t.Helper()
	i := inspect.New(inspect.Options{})
	mgr, err := manager.New(localapi.NewTest(t).RESTConfig(), manager.Options{Inspect: i})
	if err != nil {
		t.Fatal(err)
	}
	return i.Handler(mgr)
}

// TestPageFiles: each file has the policy of the page, and a type that the browser takes without guessing.
func TestPageFiles(t *testing.T) {
	h := idleHandler(t)
	files, err := os.ReadDir("page/assets")
	if err != nil {
		t.Fatal(err)
	}
	types := map[string]string{
		"html": "text/html; charset=utf-8", "js": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8",
		"svg": "image/svg+xml",
	}
	for _, f := range files {
		path := "/inspect/" + strings.TrimSuffix(f.Name(), "index.html")
		w := serve(h, http.MethodGet, path)
		_, ending, _ := strings.Cut(f.Name(), ".")
		if w.Code != http.StatusOK || w.Header().Get("Content-Type") != types[ending] {
			t.Errorf("%s: %d, %q", path, w.Code, w.Header().Get("Content-Type"))
		}
	}
	if len(files) < 8 {
		t.Errorf("only %d files", len(files))
	}
	if w := serve(h, http.MethodGet, "/inspect/none.js"); w.Code != http.StatusNotFound {
		t.Errorf("a file that is not there: %d", w.Code)
	}
}

// TestHeaders: answers and errors alike tell the browser what the page may do.
func TestHeaders(t *testing.T) {
	h := idleHandler(t)
	for _, path := range []string{"/inspect/", "/inspect/app.js", "/inspect/api/pipeline", "/inspect/api/object"} {
		got := serve(h, http.MethodGet, path).Header()
		for _, part := range []string{
			"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'",
			"frame-ancestors 'none'",
		} {
			if !strings.Contains(got.Get("Content-Security-Policy"), part) {
				t.Errorf("%s: the policy %q has no %q", path, got.Get("Content-Security-Policy"), part)
			}
		}
		if got.Get("X-Content-Type-Options") != "nosniff" || got.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: headers %v", path, got)
		}
	}
}

// TestRefused: other methods, other hosts and other origins are refused, and parameters that make no sense.
func TestRefused(t *testing.T) {
	h := idleHandler(t)
	const pipeline = "/inspect/api/pipeline"
	for _, c := range []struct {
		method, path string
		headers      []string
		want         int
	}{
		{"POST", pipeline, nil, 405},
		{"HEAD", "/inspect/api/events", nil, 405},
		{"DELETE", "/inspect/", nil, 405},
		{"GET", pipeline, []string{"Host", "attacker.example:6060"}, 403},
		{"GET", pipeline, []string{"Host", "127.0.0.1.attacker.example"}, 403},
		{"GET", pipeline, []string{"Host", "localhost.attacker.example"}, 403},
		{"GET", "/inspect/api/events", []string{"Host", "attacker.example"}, 403},
		{"GET", "/inspect/", []string{"Host", ""}, 403},
		{"GET", pipeline, []string{"Host", "localhost:6060"}, 200},
		{"GET", pipeline, []string{"Host", "[::1]:6060"}, 200},
		{"GET", pipeline, []string{"Host", "10.0.0.1"}, 200},
		{"GET", pipeline, []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"GET", "/inspect/api/events", []string{"Sec-Fetch-Site", "same-site"}, 403},
		{"GET", pipeline, []string{"Sec-Fetch-Site", "same-origin"}, 200},
		{"GET", "/inspect/", []string{"Sec-Fetch-Site", "cross-site"}, 200},
		{"GET", pipeline + "?limit=-1", nil, 400},
		{"GET", pipeline + "?limit=many", nil, 400},
		{"GET", "/inspect/api/object?resource=configmaps", nil, 400},
		{"GET", "/inspect/api/compare?name=a", nil, 400},
		{"GET", "/inspect/api/events?name=a", nil, 400},
		{"GET", "/inspect/api/events?resource=dragons&name=a", nil, 404},
		{"GET", "/inspect/api/compare?resource=configmaps&namespace=default&name=a", nil, 404},
		{"GET", "/inspect/api/none", nil, 404},
	} {
		if w := serve(h, c.method, c.path, c.headers...); w.Code != c.want {
			t.Errorf("%s %s %v: %d %s, want %d", c.method, c.path, c.headers, w.Code, w.Body, c.want)
		}
	}
}

// TestHostOfOtherAddresses: on an address that is not loopback, the manager has authenticated the reader, or everyone
// may read; the name is then nobody's secret.
func TestHostOfOtherAddresses(t *testing.T) {
	h := idleHandler(t)
	for address, want := range map[string]int{"10.0.0.1": 200, "127.0.0.1": 403, "::1": 403} {
		r := httptest.NewRequestWithContext(context.WithValue(t.Context(), http.LocalAddrContextKey,
			&net.TCPAddr{IP: net.ParseIP(address), Port: 6060}), http.MethodGet, "/inspect/api/pipeline", nil)
		r.Host = "debug.controllers.svc:6060"
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != want {
			t.Errorf("on %s: %d, want %d", address, w.Code, want)
		}
	}
}

// compared is the answer of /inspect/api/compare.
type compared struct {
	Caches []struct {
		CachedVersion, LiveVersion string
		Different                  int
		Rows                       []struct {
			Cached, Live string
			Same         bool
		}
	}
}

// compare asks for an object, and returns the rows that differ.
func compare(t *testing.T, h http.Handler, query string) (different []string, c compared, body string) {
	t.Helper()
	w := serve(h, http.MethodGet, "/inspect/api/compare?"+query)
	body = w.Body.String()
	if err := json.Unmarshal([]byte(body), &c); err != nil || len(c.Caches) != 1 {
		t.Fatal(err, w.Code, body)
	}
	for _, r := range c.Caches[0].Rows {
		if !r.Same {
			different = append(different, strings.TrimSpace(r.Cached)+" | "+strings.TrimSpace(r.Live))
		}
	}
	if len(different) != c.Caches[0].Different {
		t.Errorf("%d rows differ, the count is %d", len(different), c.Caches[0].Different)
	}
	return different, c, body
}

func idle(client.Client) reconcile.Func[reconcile.Request] {
	return func(context.Context, reconcile.Request) (reconcile.Result, error) { return reconcile.Result{}, nil }
}

// lose is a transform that leaves a key out and changes another.
func lose(obj informer.Object) (informer.Object, error) {
	if cm, ok := obj.(*corev1.ConfigMap); ok && cm.Data != nil {
		delete(cm.Data, "lost")
		cm.Data["z"] = "2"
	}
	return obj, nil
}

// TestCompare: the differences are those that a transform of the cache makes, and no others.
func TestCompare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		object := metav1.ObjectMeta{Namespace: "default", Name: "a"}
		api := localapi.NewTest(t, &corev1.ConfigMap{
			ObjectMeta: object, Data: map[string]string{"a": "<script>", "lost": "x", "text": "1\n2", "z": "1"},
		}, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "same"}})
		i := inspect.New(inspect.Options{})
		mgr, err := manager.New(api.RESTConfig(), manager.Options{
			Inspect: i,
			Caches: []client.CacheOf{{
				Object: &corev1.ConfigMap{}, Informer: informer.InformerOptions{Transform: lose, TransformName: "lose"},
			}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := builder.ControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Complete(idle(nil)); err != nil {
			t.Fatal(err)
		}
		run(t, mgr)
		synctest.Wait()
		h := i.Handler(mgr)
		different, c, _ := compare(t, h, "resource=configmap&namespace=default&name=a")
		if want := []string{" | lost: x", `z: "2" | z: "1"`}; !slices.Equal(different, want) {
			t.Errorf("differences %q, want %q", different, want)
		}
		if got := c.Caches[0]; got.CachedVersion == "" || got.CachedVersion != got.LiveVersion {
			t.Errorf("versions %q and %q", got.CachedVersion, got.LiveVersion)
		}
		if different, c, _ := compare(t, h, "resource=configmaps&namespace=default&name=same"); len(different) > 0 ||
			len(c.Caches[0].Rows) < 5 {
			t.Errorf("an object that is the same: %+v", c)
		}
		if _, c, _ := compare(t, h, "resource=configmaps&namespace=default&name=none"); len(c.Caches[0].Rows) > 0 {
			t.Errorf("an object that is nowhere: %+v", c)
		}
	})
}

// TestSecretsAreHidden: no answer has the data of a Secret, nor the annotation in which kubectl keeps it.
func TestSecretsAreHidden(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := inspect.New(inspect.Options{})
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "default", Name: "s",
				Annotations: map[string]string{
					corev1.LastAppliedConfigAnnotation: `{"data":{"password":"aHVudGVyMg=="}}`,
				},
			},
			Data: map[string][]byte{"password": []byte("hunter2")},
		}
		api := localapi.NewTest(t, secret)
		mgr, err := manager.New(api.RESTConfig(), manager.Options{Inspect: i})
		if err != nil {
			t.Fatal(err)
		}
		if err := builder.ControllerManagedBy(mgr).For(&corev1.Secret{}).Complete(idle(nil)); err != nil {
			t.Fatal(err)
		}
		run(t, mgr)
		synctest.Wait()
		h := i.Handler(mgr)
		const query = "resource=secrets&namespace=default&name=s"
		secret.Data["password"] = []byte("hunter3")
		secrets := kubernetes.NewForConfigOrDie(api.RESTConfig()).CoreV1().Secrets("default")
		if _, err := secrets.Update(t.Context(), secret, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if _, c, body := compare(t, h, query); !strings.Contains(body, "password: (not shown)") ||
			len(c.Caches[0].Rows) < 5 {
			t.Errorf("the comparison does not tell that there is a password: %s", body)
		}
		for _, path := range []string{"compare?" + query, "object?" + query, "pipeline", "objects"} {
			body := serve(h, http.MethodGet, "/inspect/api/"+path).Body.String()
			for _, word := range []string{"hunter", "aHVudGVy", corev1.LastAppliedConfigAnnotation} {
				if strings.Contains(body, word) {
					t.Errorf("%s shows %q: %s", path, word, body)
				}
			}
		}
	})
}

// run runs a manager until the test ends.
func run(t *testing.T, mgr *manager.Manager) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// reader is a ResponseWriter that hands each message to a channel, and blocks while nobody takes it.
type reader struct {
	header   http.Header
	messages chan string // It sends; nobody closes it.
	ctx      context.Context
}

func (r *reader) Header() http.Header { return r.header }
func (r *reader) WriteHeader(int)     {}
func (r *reader) Flush()              {}

func (r *reader) Write(p []byte) (int, error) {
	select {
	case r.messages <- string(p):
		return len(p), nil
	case <-r.ctx.Done():
		return 0, r.ctx.Err()
	}
}

// stream opens a stream of an object. stop waits until its handler has returned.
func stream(t *testing.T, h http.Handler, query string) (messages chan string, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/inspect/api/events?"+query, nil)
	r.Host = "localhost"
	w := &reader{header: http.Header{}, messages: make(chan string), ctx: ctx}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		h.ServeHTTP(w, r)
	}()
	return w.messages, func() { cancel(); <-ended }
}

// next returns the data of the next message of an event.
func next(t *testing.T, messages chan string, event string) string {
	t.Helper()
	for {
		select {
		case m := <-messages:
			if data, ok := strings.CutPrefix(m, "event: "+event+"\ndata: "); ok {
				return strings.TrimSuffix(data, "\n\n")
			}
		case <-time.After(time.Minute):
			t.Fatalf("no %s in a minute", event)
		}
	}
}

// TestStream: a stream has the whole timeline first and then what changes, and ends with its request. The bubble of the
// test sees to it that no goroutine stays.
func TestStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := inspect.New(inspect.Options{})
		mgr := start(t, i, done, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}})
		time.Sleep(time.Second)
		messages, stop := stream(t, i.Handler(mgr), "resource=configmaps&namespace=default&name=a")
		defer stop()
		var p pipeview.Pipeline
		if err := json.Unmarshal([]byte(next(t, messages, "pipeline")), &p); err != nil || len(p.Controllers) != 1 {
			t.Errorf("pipeline: %+v %v", p, err)
		}
		want := []pipeview.Flow{{Resource: "configmaps", Controller: "configmap", Handled: 2, Written: 1}}
		if fmt.Sprint(p.Flows) != fmt.Sprint(want) {
			t.Errorf("flows %+v, want %+v", p.Flows, want)
		}
		read := map[uint64]string{}
		take := func() {
			var c struct {
				Steps []json.RawMessage
				Gone  []uint64
			}
			if err := json.Unmarshal([]byte(next(t, messages, "steps")), &c); err != nil {
				t.Fatal(err)
			}
			for _, raw := range c.Steps {
				var e inspect.Entry
				if err := json.Unmarshal(raw, &e); err != nil {
					t.Fatal(err)
				}
				read[e.Number] = string(raw)
			}
			for _, n := range c.Gone {
				delete(read, n)
			}
		}
		same := func() {
			t.Helper()
			steps := i.Timeline(inspect.Ref{Resource: "configmaps", Namespace: "default", Name: "a"}).Steps
			for n := range steps {
				if text, _ := json.Marshal(&steps[n]); read[steps[n].Number] != string(text) {
					t.Errorf("step %d: %s, want %s", steps[n].Number, read[steps[n].Number], text)
				}
			}
			if len(read) != len(steps) || len(steps) == 0 {
				t.Errorf("%d steps, want %d", len(read), len(steps))
			}
		}
		take()
		same()
		if why := next(t, messages, "why"); !strings.Contains(why, "will reconcile default/a") {
			t.Errorf("why: %s", why)
		}
		var cm corev1.ConfigMap
		for n := range 60 { // more than are kept of an object
			key := client.ObjectKey{Namespace: "default", Name: "a"}
			if err := mgr.GetClient().Get(t.Context(), key, &cm); err != nil {
				t.Fatal(err)
			}
			cm.Data["n"] = fmt.Sprint(n)
			if err := mgr.GetClient().Update(t.Context(), &cm); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		take()
		same()
	})
}

// changed records a change of a cache.
func changed(i *inspect.Inspector, resource, event string, state metav1.Object) {
	i.Recorder().Changed(resource, "", event, false, nil, state, time.Now())
}

// TestFind: each word must be in the resource or the name, in whatever case.
func TestFind(t *testing.T) {
	i := inspect.New(inspect.Options{})
	for _, s := range []trace.Subject{
		{Resource: "pods", Namespace: "default", Name: "web-1"},
		{Resource: "deployments.apps", Namespace: "default", Name: "web"},
		{Resource: "pods", Namespace: "kube-system", Name: "dns"},
	} {
		changed(i, s.Resource, "Add", &metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name})
	}
	for text, want := range map[string]string{
		"":           "[pods kube-system/dns deployments.apps default/web pods default/web-1]",
		"web":        "[deployments.apps default/web pods default/web-1]",
		"deploy WEB": "[deployments.apps default/web]", "pods default/": "[pods default/web-1]", "pods none": "[]",
	} {
		if got := fmt.Sprint(i.Find(text, 10)); got != want {
			t.Errorf("Find(%q) is %s, want %s", text, got, want)
		}
	}
	if got := i.Find("", 1); len(got) != 1 {
		t.Errorf("%d objects, want 1", len(got))
	}
}

// TestSlowReader: a reader that takes nothing holds up neither the pipeline nor other readers, and nothing is kept for
// it: when it reads again, it gets the state of that moment in one message.
func TestSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := inspect.New(inspect.Options{})
		mgr := start(t, i, idle)
		h := i.Handler(mgr)
		slow, stop := stream(t, h, "resource=configmaps&namespace=default&name=a")
		defer stop()
		next(t, slow, "pipeline")
		for n := range 10_000 {
			changed(i, "configmaps", "Update", &metav1.ObjectMeta{
				Namespace: "default", Name: "a", ResourceVersion: fmt.Sprint(n),
			})
			if n%100 == 0 {
				time.Sleep(time.Second)
			}
		}
		quick, end := stream(t, h, "")
		next(t, quick, "pipeline")
		end()
		total := 0
		for range 4 { // what was being written, and the first whole round
			m := <-slow
			total += len(m)
		}
		if total > 100_000 {
			t.Errorf("%d bytes waited for the reader", total)
		}
	})
}

// TestMostReaders: one reader more than the limit is refused, and let in when another has gone.
func TestMostReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := inspect.New(inspect.Options{})
		h := i.Handler(start(t, i, idle))
		var stops []func()
		for range 16 {
			messages, stop := stream(t, h, "")
			next(t, messages, "pipeline")
			stops = append(stops, stop)
		}
		if w := serve(h, http.MethodGet, "/inspect/api/events"); w.Code != http.StatusServiceUnavailable {
			t.Errorf("the 17th reader: %d", w.Code)
		}
		stops[0]()
		messages, stop := stream(t, h, "")
		next(t, messages, "pipeline")
		stop()
		for _, stop := range stops[1:] {
			stop()
		}
	})
}

// TestWatchedStepsStay: the steps of an object that a page shows are not forgotten, however many others have some; when
// the page is closed, they are.
func TestWatchedStepsStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := inspect.New(inspect.Options{Subjects: 10})
		mgr := start(t, i, idle)
		flood := func() {
			for n := range 100 {
				changed(i, "pods", "Add", &metav1.ObjectMeta{Name: fmt.Sprint(n)})
			}
		}
		object := trace.Subject{Resource: "configmaps", Namespace: "default", Name: "a"}
		changed(i, "configmaps", "Add", &metav1.ObjectMeta{Namespace: "default", Name: "a"})
		messages, stop := stream(t, i.Handler(mgr), "resource=configmaps&namespace=default&name=a")
		next(t, messages, "steps")
		flood()
		if steps, _ := i.Recorder().Steps(object); len(steps) != 1 {
			t.Errorf("%d steps of the object that the page shows", len(steps))
		}
		stop()
		flood()
		if steps, _ := i.Recorder().Steps(object); len(steps) != 0 {
			t.Errorf("%d steps after the page was closed", len(steps))
		}
	})
}

// TestStreamOverHTTP: the manager's server ends requests after a while, but not streams.
func TestStreamOverHTTP(t *testing.T) {
	i := inspect.New(inspect.Options{})
	mgr, err := manager.New(localapi.NewTest(t).RESTConfig(), manager.Options{Inspect: i})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(i.Handler(mgr))
	server.Config.ReadTimeout, server.Config.WriteTimeout = 50*time.Millisecond, 50*time.Millisecond
	server.Start()
	defer server.Close()
	answer, err := server.Client().Get(server.URL + "/inspect/api/events")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if got := answer.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Errorf("content type %q", got)
	}
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 1<<20)
	for n := 0; n < 3; {
		if !lines.Scan() {
			t.Fatal(errors.Join(lines.Err(), errors.New("the stream has ended")))
		}
		if strings.HasPrefix(lines.Text(), "event: pipeline") {
			n++
		}
	}
}

// TestStory: the page learns of the story and of the book, which is served beside it.
func TestStory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := inspect.New(inspect.Options{
			Story: func() any { return map[string]any{"at": 1, "text": "4 of 5 available"} },
			Book: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				fmt.Fprint(w, "the file ", r.URL.Path)
			}),
		})
		h := i.Handler(start(t, i, done))
		for path, want := range map[string]string{
			"/inspect/api/pipeline":   `"book":true,"story":{"at":1,"text":"4 of 5 available"}`,
			"/inspect/book/docs/a.md": "the file /docs/a.md",
		} {
			if got := serve(h, http.MethodGet, path).Body.String(); !strings.Contains(got, want) {
				t.Errorf("%s: %s", path, got)
			}
		}
	})
}

// TestTap: what controls the pipeline is served beside the page, with the methods that it takes.
func TestTap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := inspect.New(inspect.Options{Tap: tap.New(tap.Options{})})
		h := i.Handler(start(t, i, done))
		r := httptest.NewRequest(http.MethodPost, "/inspect/api/tap?do=pause", nil)
		r.Host = "127.0.0.1:6060"
		answer := httptest.NewRecorder()
		h.ServeHTTP(answer, r)
		if answer.Code != http.StatusOK || !strings.Contains(answer.Body.String(), `"paused":true`) {
			t.Errorf("%d %s", answer.Code, answer.Body)
		}
		if p := serve(h, http.MethodGet, "/inspect/api/pipeline").Body.String(); !strings.Contains(p, `"tap":true`) {
			t.Errorf("the page does not learn of the tap: %s", p)
		}
	})
}
