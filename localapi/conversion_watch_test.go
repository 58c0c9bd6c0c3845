package localapi_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/flyball-dev/flyball/localapi"
)

// TestConvertOnce: all watchers of a version and the reads after them need one call of the webhook for an event.
func TestConvertOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := localapi.NewTest(t, converted())
		var calls atomic.Int32
		s.HandleWebhook("hooks/convert", converting(t, func(*apiextensionsv1.ConversionRequest) {
			calls.Add(1)
			time.Sleep(time.Second) // all watchers come while the first call is under way
		}))
		client := dynamic.NewForConfigOrDie(s.RESTConfig())
		v1, v2 := client.Resource(widgetsIn("v1")), client.Resource(widgetsIn("v2"))
		var watchers []watch.Interface
		for range 5 {
			w, err := v2.Watch(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer w.Stop()
			watchers = append(watchers, w)
		}
		write := func(want watch.EventType, err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range watchers {
				if e := <-w.ResultChan(); e.Type != want {
					t.Errorf("got %s, want %s", e.Type, want)
				}
			}
			_, err = v2.Get(t.Context(), "a", metav1.GetOptions{})
			if (err != nil) != (want == watch.Deleted) {
				t.Error(err)
			}
			list, err := v2.List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			list, err = v2.List(t.Context(), metav1.ListOptions{
				ResourceVersion: list.GetResourceVersion(), ResourceVersionMatch: metav1.ResourceVersionMatchExact,
			})
			if err != nil || (len(list.Items) == 0) != (want == watch.Deleted) {
				t.Errorf("exact list: %v, %v", list, err)
			}
			if n := calls.Swap(0); n != 1 {
				t.Errorf("%s: %d calls", want, n)
			}
		}
		_, err := v1.Create(t.Context(), widget("a"), metav1.CreateOptions{})
		write(watch.Added, err)
		patch := []byte(`{"spec": {"x": 1}}`)
		_, err = v1.Patch(t.Context(), "a", types.MergePatchType, patch, metav1.PatchOptions{})
		write(watch.Modified, err)
		write(watch.Deleted, v1.Delete(t.Context(), "a", metav1.DeleteOptions{}))
	})
}

// TestConvertAfterAnotherGaveUp: a reader that waits for the call of another gets its object although the other one
// gives up.
func TestConvertAfterAnotherGaveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := localapi.NewTest(t, converted())
		client := dynamic.NewForConfigOrDie(s.RESTConfig())
		_, err := client.Resource(widgetsIn("v1")).Create(t.Context(), widget("a"), metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var calls atomic.Int32
		answer := converting(t, func(*apiextensionsv1.ConversionRequest) {})
		s.HandleWebhook("hooks/convert", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if calls.Add(1) == 1 {
				<-r.Context().Done()
				return
			}
			answer.ServeHTTP(w, r)
		}))
		impatient, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var gaveUp error
		done := make(chan struct{}) // closed by the goroutine, which has set gaveUp
		go func() {
			defer close(done)
			_, gaveUp = client.Resource(widgetsIn("v2")).Get(impatient, "a", metav1.GetOptions{})
		}()
		synctest.Wait()
		for range 2 {
			if _, err := client.Resource(widgetsIn("v2")).Get(t.Context(), "a", metav1.GetOptions{}); err != nil {
				t.Error(err)
			}
		}
		<-done
		if n := calls.Load(); gaveUp == nil || n != 2 {
			t.Errorf("the first: %v; %d calls", gaveUp, n)
		}
	})
}
