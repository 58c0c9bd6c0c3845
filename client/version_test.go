package client_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flyball-dev/flyball/client"
)

// versions is a transport that makes the server seem to number its versions in another way. show and read are inverse
// to each other. It supports JSON only, so its caches are of unstructured objects.
type versions struct {
	next       http.RoundTripper
	show, read func(string) string
}

var versionText = regexp.MustCompile(`"resourceVersion":"([^"]+)"`)

func each(text []byte, f func(string) string) []byte {
	return versionText.ReplaceAllFunc(text, func(match []byte) []byte {
		return []byte(`"resourceVersion":"` + f(string(versionText.FindSubmatch(match)[1])) + `"`)
	})
}

func (v *versions) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	query := r.URL.Query()
	if at := query.Get("resourceVersion"); at != "" && at != "0" {
		query.Set("resourceVersion", v.read(at))
		r.URL.RawQuery = query.Encode()
	}
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		body = each(body, v.read)
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
	answer, err := v.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	answer.Body = &lines{
		Closer: answer.Body, from: bufio.NewReader(answer.Body),
		change: func(line []byte) []byte { return each(line, v.show) },
	}
	answer.ContentLength = -1
	answer.Header.Del("Content-Length")
	return answer, nil
}

// lines is a body that changes each line that it reads.
type lines struct {
	io.Closer
	from   *bufio.Reader
	change func([]byte) []byte
	rest   []byte
}

func (l *lines) Read(p []byte) (int, error) {
	if len(l.rest) == 0 {
		line, err := l.from.ReadBytes('\n')
		if len(line) == 0 {
			return 0, err
		}
		l.rest = l.change(line)
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

// anyNames lists the unstructured ConfigMaps.
func (w *world) anyNames() string {
	w.t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(configMaps.GroupVersion().WithKind("ConfigMapList"))
	if err := w.List(w.ctx, list); err != nil {
		return err.Error()
	}
	var names []string
	for _, item := range list.Items {
		names = append(names, item.GetName())
	}
	return strings.Join(names, " ")
}

func (w *world) warmAny() {
	w.t.Helper()
	w.anyNames()
	time.Sleep(time.Millisecond)
}

func anyNamed(name string) *unstructured.Unstructured {
	u := anyMap()
	u.SetNamespace("default")
	u.SetName(name)
	return u
}

// The versions of this server cannot be compared. The overlay shows an own write until the cache holds exactly that
// version. It ends after a minute, because the cache never holds a state that others change at once.
func TestVersionsThatDoNotCompare(t *testing.T) {
	s := setup{wrap: func(next http.RoundTripper) http.RoundTripper {
		return &versions{
			next: next,
			show: func(v string) string { return "v-" + v },
			read: func(v string) string { return strings.TrimPrefix(v, "v-") },
		}
	}}
	s.run(t, func(w *world) {
		w.set(func() { w.lag = time.Second })
		w.warmAny()
		a := anyNamed("a")
		w.must(w.Create(w.ctx, a))
		if !strings.HasPrefix(a.GetResourceVersion(), "v-") {
			t.Fatalf("version %s", a.GetResourceVersion())
		}
		if got := w.anyNames(); got != "a" {
			t.Errorf("list %q", got)
		}
		time.Sleep(2 * time.Second)
		if got := w.anyNames(); got != "a" { // The cache has it: the entry goes,
			t.Errorf("list %q", got)
		}
		w.must(other(w).Delete(w.ctx, configMap("a")))
		time.Sleep(2 * time.Second) // and does not hide what others do.
		if got := w.anyNames(); got != "" {
			t.Errorf("list after a deletion by others %q", got)
		}

		w.set(func() { w.cut = true })
		w.must(w.Create(w.ctx, anyNamed("b")))
		w.must(other(w).Delete(w.ctx, configMap("b")))
		w.must(w.api.Compact(w.ctx))
		w.set(func() { w.cut = false })
		time.Sleep(30 * time.Second)
		if got := w.anyNames(); got != "b" {
			t.Errorf("list %q: nothing says yet that the cache has got further", got)
		}
		time.Sleep(31 * time.Second)
		if got := w.anyNames(); got != "" {
			t.Errorf("list %q: own writes are remembered for ever", got)
		}

		w.must(w.Create(w.ctx, anyNamed("c")))
		w.must(w.Delete(w.ctx, anyNamed("c")))
		if got := w.anyNames(); got != "" {
			t.Errorf("list after a deletion %q", got)
		}
	})
}

// The server's history goes back: a restored backup lacks the latest writes. The record forgets them: reads neither
// show them nor wait for them. Reads see later writes as usual.
func TestVersionsThatGoBack(t *testing.T) {
	var ahead atomic.Int64 // how much higher the versions were before
	shift := func(sign int64) func(string) string {
		return func(v string) string {
			n, err := strconv.ParseInt(v, 10, 64)
			if err != nil {
				return v
			}
			return strconv.FormatInt(n+sign*ahead.Load(), 10)
		}
	}
	ahead.Store(100_000)
	s := setup{wrap: func(next http.RoundTripper) http.RoundTripper {
		return &versions{next: next, show: shift(1), read: shift(-1)}
	}}
	s.run(t, func(w *world) {
		w.warmAny()
		w.set(func() { w.lag = time.Hour })
		w.must(w.Create(client.WithOwner(w.ctx, "me"), anyNamed("lost")))
		w.must(w.Create(w.ctx, anyNamed("kept")))
		if err := w.Ready(w.ctx, "me"); !errors.Is(err, client.ErrStale) {
			t.Errorf("ready: %v", err)
		}
		ahead.Store(0)
		w.must(other(w).Delete(w.ctx, configMap("lost"))) // As if it had never been.
		w.must(w.api.Compact(w.ctx))
		w.set(func() { w.lag, w.cut = 0, true })
		time.Sleep(2 * time.Hour)
		w.set(func() { w.cut = false })
		time.Sleep(10 * time.Minute)
		if got := w.anyNames(); got != "kept" {
			t.Errorf("list %q, health %+v", got, w.factory.Health())
		}
		if err := w.Get(w.ctx, keyOf(configMap("lost")), anyMap()); !apierrors.IsNotFound(err) {
			t.Errorf("get: %v", err)
		}
		w.must(w.Ready(w.ctx, "me"))
		w.set(func() { w.lag = time.Hour })
		w.must(w.Create(w.ctx, anyNamed("new")))
		w.must(w.Delete(w.ctx, anyNamed("kept")))
		if got := w.anyNames(); got != "new" {
			t.Errorf("list afterwards %q", got)
		}
	})
}
