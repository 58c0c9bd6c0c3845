package informer

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/listwatch"
)

// api is a transport that answers every request by a body of JSON; watches say nothing.
type api string

func (a api) RoundTrip(r *http.Request) (*http.Response, error) {
	body := io.NopCloser(strings.NewReader(string(a)))
	if r.URL.Query().Get("watch") != "" {
		body = silence{r.Context().Done()}
	}
	return &http.Response{
		StatusCode: http.StatusOK, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: body,
	}, nil
}

// silence is a response body that never returns data.
type silence struct{ over <-chan struct{} }

func (s silence) Read([]byte) (int, error) {
	<-s.over
	return 0, io.EOF
}

func (silence) Close() error { return nil }

// TestCaseUnreadable (16): one object that cannot be decoded keeps client-go's informer from ever syncing; Flyball's
// goes on without it and names it.
func TestCaseUnreadable(t *testing.T) {
	unhurried(t)
	synctest.Test(t, func(t *testing.T) {
		server := api(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"3"},"items":[` +
			`{"metadata":{"namespace":"a","name":"bad","resourceVersion":"1"},"spec":{"containers":"none"}},` +
			`{"metadata":{"namespace":"a","name":"good","resourceVersion":"2"}}]}`)
		client, err := kubernetes.NewForConfig(&rest.Config{Host: "http://api.example", Transport: server})
		must(t, err)
		lw := cache.ToListWatcherWithWatchListSemantics(
			cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "pods", "", fields.Everything()), listsOnly{},
		)
		theirs(t, lw, func(t *testing.T, inf cache.SharedIndexInformer, told *recorder) {
			time.Sleep(time.Hour)
			if inf.HasSynced() {
				t.Error("client-go's informer has synced")
			}
		})
		ours := informer.NewSharedInformer(listwatch.NewRESTListerWatcher[*corev1.Pod](client.CoreV1().RESTClient(),
			listwatch.RESTOptions{
				Resource: corev1.SchemeGroupVersion.WithResource("pods"), Kind: "Pod",
			}), informer.Options[*corev1.Pod]{Resource: "pods"})
		defer running(t, runner{ours})()
		synctest.Wait()
		h := ours.Health()
		if _, found := ours.Get("a", "good"); !found || !h.Synced || h.Unreadable != 1 ||
			!strings.HasPrefix(h.UnreadableErr.Error(), "decode object a/bad: ") {
			t.Errorf("%+v", h)
		}
	})
}

// runner runs one of ours.
type runner struct {
	*informer.SharedInformer[*corev1.Pod]
}

func (r runner) RunWithContext(ctx context.Context) { _ = r.Run(ctx) }

// listsOnly is a client that does not stream lists.
type listsOnly struct{}

func (listsOnly) IsWatchListSemanticsUnSupported() bool { return true }
