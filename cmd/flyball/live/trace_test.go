package live

import (
	"context"
	"flag"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/inspect"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/manager/builder"
	"github.com/flyball-dev/flyball/reconcile"
)

// direct calls a handler without a network.
type direct struct{ http.Handler }

func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	answer := w.Result()
	answer.Request = r
	return answer, nil
}

func clientOf(t *testing.T, h http.Handler) *Client {
	t.Helper()
	c := &Client{Address: DefaultAddress, http: &http.Client{Transport: direct{h}}}
	if err := c.Open(); err != nil {
		t.Fatal(err)
	}
	return c
}

// settings is the ConfigMap default/settings.
var settings = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "settings"}}

// started runs a manager that writes done into ConfigMaps, until the test ends. It returns the administrator's client
// and one of its inspector.
func started(t *testing.T, objects ...runtime.Object) (client.Client, *Client) {
	t.Helper()
	api := localapi.NewTest(t, objects...)
	i := inspect.New(inspect.Options{})
	mgr, err := manager.New(api.RESTConfig(), manager.Options{Inspect: i})
	if err != nil {
		t.Fatal(err)
	}
	c := mgr.GetClient()
	err = builder.ControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Complete(reconcile.Func[reconcile.Request](
		func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
			var cm corev1.ConfigMap
			if err := c.Get(ctx, req.NamespacedName, &cm); err != nil || cm.Data["done"] == "yes" {
				return reconcile.Result{}, client.IgnoreNotFound(err)
			}
			klog.FromContext(ctx).Info("Not done yet")
			cm.Data = map[string]string{"done": "yes"}
			return reconcile.Result{}, c.Update(ctx, &cm)
		}))
	if err != nil {
		t.Fatal(err)
	}
	admin, err := client.New(api.RESTConfig(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	time.Sleep(5 * time.Second)
	return admin, clientOf(t, i.Handler(mgr))
}

// page is where the output of the commands is shown.
const page = "../../../docs/inspect.md"

var update = flag.Bool("update", false, "write what the commands print into "+page)

// onPage compares a block of the page with what its command prints.
func onPage(t *testing.T, command, output string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head := "```console\n$ " + command + "\n"
	before, rest, found := strings.Cut(string(text), head)
	shown, after, _ := strings.Cut(rest, "```")
	if !found {
		t.Fatalf("%s does not show %s", page, command)
	}
	if *update {
		if err := os.WriteFile(page, []byte(before+head+output+"```"+after), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if diff := cmp.Diff(shown, output); diff != "" {
		t.Errorf("%s: %s (-page +output); go test ./cmd/flyball/live -update writes it:\n%s", page, command, diff)
	}
}

func TestTrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := started(t, settings)
		var out strings.Builder
		object := inspect.Ref{Resource: "configmap", Namespace: "default", Name: "settings"}
		trace := Trace{Client: c, Out: &out, Object: object}
		if err := trace.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		onPage(t, "flyball trace configmap/settings", out.String())
		out.Reset()
		trace.JSON, trace.Object.Resource = true, "cm"
		if err := trace.Run(t.Context()); err != nil || !strings.Contains(out.String(), `"stage": "reconcile"`) {
			t.Errorf("as JSON: %v\n%s", err, &out)
		}
	})
}

// A name is looked for in other namespaces only if none was given.
func TestTraceFindsTheNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := started(t,
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}},
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "bank"}},
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "prices"}},
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "both"}},
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "bank", Name: "both"}})
		for _, test := range []struct {
			name string
			any  bool
			says string
		}{
			{"prices", true, "configmaps shop/prices"},
			{"prices", false, "configmaps default/prices\n=> the server has no such object"},
			{"none", true, "configmaps default/none\n=> the server has no such object"},
			{"both", true, "configmaps both is in several namespaces: give one of bank, shop with -n"},
		} {
			var out strings.Builder
			trace := Trace{
				Client: c, Out: &out, AnyNamespace: test.any,
				Object: inspect.Ref{Resource: "ConfigMap", Namespace: "default", Name: test.name},
			}
			text := ""
			if err := trace.Run(t.Context()); err != nil {
				text = err.Error()
			}
			if text = out.String() + text; !strings.HasPrefix(text, test.says) {
				t.Errorf("%+v: %s", test, text)
			}
		}
	})
}

// Each step is printed once, the steps of later changes when they have happened.
func TestTraceFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		admin, c := started(t, settings)
		ctx, stop := context.WithCancel(t.Context())
		told, out := io.Pipe()
		ended := make(chan error, 1)
		object := inspect.Ref{Resource: "configmaps", Namespace: "default", Name: "settings"}
		trace := Trace{Client: c, Out: out, Follow: true, Object: object}
		go func() {
			ended <- trace.Run(ctx)
			out.Close()
		}()
		var all strings.Builder
		read := make(chan error, 1)
		go func() {
			_, err := io.Copy(&all, told)
			read <- err
		}()
		time.Sleep(10 * time.Second)
		var cm corev1.ConfigMap
		if err := admin.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "settings"}, &cm); err != nil {
			t.Fatal(err)
		}
		cm.Labels = map[string]string{"new": "yes"}
		if err := admin.Update(t.Context(), &cm); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		<-read
		for text, times := range map[string]int{
			"configmaps default/settings\n": 1, "added, by the first list": 1, "Not done yet": 1,
			`metadata.labels: none → {"new":"yes"}`: 1, "reconcile configmap-": 3, "=> ": 2,
		} {
			if n := strings.Count(all.String(), text); n != times {
				t.Errorf("%q is printed %d times, want %d:\n%s", text, n, times, &all)
			}
		}
	})
}

func TestOtherAnswers(t *testing.T) {
	for _, test := range []struct {
		code             int
		kind, text, says string
	}{
		{200, "text/html", "<html>", "6060 is not the address of an inspector: it answers 200 OK to /inspect"},
		{200, "application/json", "[]", "the answer of 127.0.0.1:6060 is not an inspector's: "},
		{302, "text/html", "", "is not the address of an inspector: it answers 302 Found"},
		{404, "text/plain", "404 page not found\n", "is not the address of an inspector: it answers 404 Not Found"},
		{404, "text/plain", "the server has no resource \"x\"\n", "the server has no resource \"x\""},
		{400, "text/plain", "Client sent an HTTP request to an HTTPS server.\n", "6060 speaks TLS: give"},
		{401, "text/plain", "Unauthorized", "127.0.0.1:6060 does not accept the token: give one with --token-file"},
		{403, "text/plain", "no", "a ClusterRole with nonResourceURLs /inspect/* and the verb get permits it: no"},
	} {
		c := clientOf(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", test.kind)
			w.WriteHeader(test.code)
			_, _ = io.WriteString(w, test.text)
		}))
		err := (&Trace{Client: c, Out: io.Discard}).Run(t.Context())
		if err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%d %q: %v", test.code, test.text, err)
		}
	}
}

// What is sent to a server with TLS, and what is said if it is not as expected.
func TestTLS(t *testing.T) {
	secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"object":{"name":"`+r.Header.Get("Authorization")+`"},"steps":[]}`)
	}))
	defer secure.Close()
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	plain := httptest.NewServer(http.NotFoundHandler())
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	address := secure.Listener.Addr().String()
	closed := plain.Listener.Addr().String()
	for _, test := range []struct {
		client Client
		says   string
	}{
		{Client{Address: address, SkipVerify: true, TokenFile: token}, "Bearer secret"},
		{Client{Address: "https://" + address}, "is not trusted: give --certificate-authority, or"},
		{Client{Address: address}, "speaks TLS: give --certificate-authority or"},
		{Client{Address: closed, SkipVerify: true}, "does not speak TLS: leave https://"},
		{Client{Address: "http://" + address, TokenFile: token}, "--token-file: the token would be sent without TLS"},
		{Client{Address: address, TokenFile: "/none"}, "--token-file: open /none"},
		{Client{Address: address, CAFile: "/none"}, "--certificate-authority: open /none"},
		{Client{Address: address, CAFile: token}, "has no certificate"},
		{Client{Address: "ftp://" + address}, "it must be host:port"},
		{Client{Address: ""}, "it must be host:port"},
	} {
		if got := answered(t, &test.client); !strings.Contains(got, test.says) {
			t.Errorf("%+v: %s", test.client, got)
		}
	}
	plain.Close()
	got := answered(t, &Client{Address: closed})
	if !strings.HasPrefix(got, "nothing listens at "+closed+"; flyball manager --inspect-address="+closed) {
		t.Error(got)
	}
}

// answered returns what a trace prints, or its error.
func answered(t *testing.T, c *Client) string {
	t.Helper()
	if err := c.Open(); err != nil {
		return err.Error()
	}
	defer c.Close()
	var out strings.Builder
	if err := (&Trace{Client: c, Out: &out}).Run(t.Context()); err != nil {
		return err.Error()
	}
	return out.String()
}
