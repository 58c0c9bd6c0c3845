package writes_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/writes"
)

// lagging is a cache that has reached version 5.
type lagging struct{ writes.Cache }

func (lagging) Namespaces() []string    { return nil }
func (lagging) Watermark(string) string { return "5" }
func (lagging) History(string) int64    { return 0 }

// server answers an update of a ConfigMap.
type server struct{}

func (server) RoundTrip(*http.Request) (*http.Response, error) {
	const stored = `{"kind":"ConfigMap","apiVersion":"v1","metadata":` +
		`{"namespace":"default","name":"a","uid":"1","resourceVersion":"7"}}`
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(stored)),
	}, nil
}

// The record is fed by a transport. A cache that is behind a write gets the answer of the write.
func ExampleNew() {
	record, err := writes.New(&rest.Config{Host: "https://cluster.example"})
	if err != nil {
		fmt.Println(err)
		return
	}
	maps := record.Resource(schema.GroupResource{Resource: "configmaps"})
	maps.Join(lagging{})

	client := http.Client{Transport: record.Wrap(server{})}
	const url = "https://cluster.example/api/v1/namespaces/default/configmaps/a"
	request, err := http.NewRequest(http.MethodPut, url, strings.NewReader("{}"))
	if err != nil {
		fmt.Println(err)
		return
	}
	response, err := client.Do(request)
	if err != nil {
		fmt.Println(err)
		return
	}
	response.Body.Close()

	entries, _, _ := maps.Unreached(lagging{}, types.NamespacedName{Namespace: "default", Name: "a"})
	for _, e := range entries {
		fmt.Println(e.Key, "was written at version", e.Version)
	}
	// Output: default/a was written at version 7
}
