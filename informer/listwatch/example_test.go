package listwatch_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/informer/listwatch"
)

// api serves one pod, whatever the request.
func api() (client rest.Interface, stop func()) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/api/v1" {
			fmt.Fprint(w, `{"resources":[{"name":"pods","kind":"Pod","namespaced":true}]}`)
			return
		}
		fmt.Fprint(w, `{"kind":"PodList","metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"a"}}]}`)
	}))
	client, err := rest.UnversionedRESTClientFor(&rest.Config{
		Host: server.URL, ContentConfig: rest.ContentConfig{NegotiatedSerializer: scheme.Codecs.WithoutConversion()},
	})
	if err != nil {
		panic(err)
	}
	return client, server.Close
}

func ExampleNewRESTListerWatcher() {
	client, stop := api()
	defer stop()
	pods := listwatch.NewRESTListerWatcher[*corev1.Pod](client, listwatch.RESTOptions{
		Resource: corev1.SchemeGroupVersion.WithResource("pods"),
	})
	result, err := pods.List(context.Background(), listwatch.ListOptions{}, func(p *corev1.Pod) error {
		fmt.Println(p.Name)
		return nil
	})
	fmt.Println(result.ResourceVersion, err)
	// Output:
	// a
	// 7 <nil>
}
