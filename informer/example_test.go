package informer_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/listwatch"
)

// codecs decode errors, the only objects that the client itself reads.
var codecs = scheme.Codecs.WithoutConversion()

// api answers just enough of the Kubernetes API to have two pods.
func api() *httptest.Server {
	pod := func(name, node string) corev1.Pod {
		return corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, ResourceVersion: "5"},
			Spec:       corev1.PodSpec{NodeName: node},
		}
	}
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Path == "/api/v1":
			_ = json.NewEncoder(w).Encode(
				metav1.APIResourceList{
					APIResources: []metav1.APIResource{{Name: "pods", Kind: "Pod", Namespaced: true}},
				},
			)
		case r.URL.Query().Get("watch") == "":
			_ = json.NewEncoder(w).Encode(
				corev1.PodList{
					ListMeta: metav1.ListMeta{ResourceVersion: "7"},
					Items:    []corev1.Pod{pod("a", "n1"), pod("b", "n2")},
				},
			)
		default:
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}
	}))
}

// run runs f until the returned function is called, which waits for its end.
func run(f func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := f(ctx); err != nil {
			fmt.Println(err)
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

func ExampleNewFactory() {
	server := api()
	defer server.Close()

	factory, err := informer.NewFactory(&rest.Config{Host: server.URL}, informer.FactoryOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	pods, err := informer.For[*corev1.Pod](factory)
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := pods.AddIndex("node",
		func(p *corev1.Pod) ([]string, error) { return []string{p.Spec.NodeName}, nil }); err != nil {
		fmt.Println(err)
		return
	}
	handler, err := pods.AddHandler(informer.Handler[*corev1.Pod]{
		OnAdd: func(p *corev1.Pod, initial bool) { fmt.Println("add", p.Name, "initial:", initial) },
	}, informer.HandlerOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer run(factory.Run)()

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := factory.WaitForSync(ctx); err != nil {
		fmt.Println(err) // For example: no permission to list, no connection, no such kind.
		return
	}
	<-handler.Synced()
	onNode2, err := pods.AllByIndex("node", "n2")
	if err != nil {
		fmt.Println(err)
		return
	}
	for pod := range onNode2 {
		fmt.Println("on n2:", pod.Name)
	}
	fmt.Println("complete up to", pods.ResourceVersion())
	// Output:
	// add a initial: true
	// add b initial: true
	// on n2: b
	// complete up to 7
}

func ExampleNewSharedInformer() {
	server := api()
	defer server.Close()
	client, err := rest.UnversionedRESTClientFor(
		&rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{NegotiatedSerializer: codecs}},
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	pods := informer.NewSharedInformer(
		listwatch.NewRESTListerWatcher[*corev1.Pod](client,
			listwatch.RESTOptions{Resource: corev1.SchemeGroupVersion.WithResource("pods"), Kind: "Pod"}),
		informer.Options[*corev1.Pod]{Resource: "pods"},
	)
	defer run(pods.Run)()
	if err := pods.WaitForSync(context.Background()); err != nil {
		fmt.Println(err)
		return
	}
	p, found := pods.Get("default", "a")
	fmt.Println(p.Spec.NodeName, found)
	// Output: n1 true
}

func ExampleNewSharedInformerOfNamespaces() {
	server := api()
	defer server.Close()
	client, err := rest.UnversionedRESTClientFor(
		&rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{NegotiatedSerializer: codecs}},
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	lws := map[string]listwatch.ListerWatcher[*corev1.Pod]{}
	for _, namespace := range []string{"default"} { // The namespaces that the program may list.
		lws[namespace] = listwatch.NewRESTListerWatcher[*corev1.Pod](client, listwatch.RESTOptions{
			Resource: corev1.SchemeGroupVersion.WithResource("pods"), Namespace: namespace,
		})
	}
	pods := informer.NewSharedInformerOfNamespaces(lws, informer.Options[*corev1.Pod]{Resource: "pods"})
	defer run(pods.Run)()
	if err := pods.WaitForSync(context.Background()); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(pods.List("default", nil)))
	// Output: 2
}
