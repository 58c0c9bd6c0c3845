package localapi_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/localapi"
)

// A write to a version that needs no conversion still calls the webhook for the managed fields of another one. When the
// client gives up, the call ends, and nothing is written.
func TestConversionOfManagedFieldsEndsWithTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := localapi.NewTest(t, converted())
		config := rest.CopyConfig(s.RESTConfig())
		config.Timeout = time.Second
		client := dynamic.NewForConfigOrDie(config)
		in := func(version string) dynamic.ResourceInterface { return client.Resource(widgetsIn(version)) }
		answers := converting(t, func(*apiextensionsv1.ConversionRequest) {})
		s.HandleWebhook("hooks/convert", answers)
		first := widget("a")
		first.Object["spec"] = map[string]any{"z": int64(1)} // the fields of an object without any have no managers
		if _, err := in("v1").Create(t.Context(), first, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		patch := func(version, spec string) error {
			_, err := in(version).Patch(t.Context(), "a", "application/merge-patch+json",
				[]byte(`{"spec": {"`+spec+`": 1}}`), metav1.PatchOptions{FieldManager: version})
			return err
		}
		if err := patch("v2", "x"); err != nil {
			t.Fatal(err)
		}
		begin, called, ended := time.Now(), 0, time.Duration(0)
		s.HandleWebhook("hooks/convert", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			called++
			<-r.Context().Done()
			ended = time.Since(begin)
		}))
		if err := patch("v1", "y"); err == nil {
			t.Error("the webhook does not answer, and the write is done")
		}
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if called != 1 || ended != time.Second {
			t.Errorf("%d calls, the last of which ends after %v", called, ended)
		}
		s.HandleWebhook("hooks/convert", answers)
		got, err := in("v1").Get(t.Context(), "a", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if spec := got.Object["spec"].(map[string]any); spec["y"] != nil {
			t.Errorf("it was written after the client had given up: %v", spec)
		}
	})
}
