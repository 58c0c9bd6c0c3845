package indexer_test

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/informer/deltafifo"
	"github.com/flyball-dev/flyball/informer/indexer"
)

func ExampleNew() {
	byLabel := func(m *metav1.PartialObjectMetadata) ([]string, error) { return []string{m.Labels["app"]}, nil }
	cache := indexer.New[*metav1.PartialObjectMetadata](nil, indexer.Options{})
	if err := cache.AddIndex("app", byLabel); err != nil {
		fmt.Println(err)
		return
	}
	object := func(name, version string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{
			ObjectMeta: metav1.ObjectMeta{
				Name: name, ResourceVersion: version,
				Labels: map[string]string{"app": "web"},
			},
		}
	}
	type delta = deltafifo.Delta[*metav1.PartialObjectMetadata]
	applied, err := cache.Apply([]delta{
		{
			Type: deltafifo.Replace, Objects: []*metav1.PartialObjectMetadata{object("a", "1"), object("b", "2")},
			ResourceVersion: "2",
		},
		{Type: deltafifo.Upsert, Object: object("b", "3"), ResourceVersion: "3"},
		{Type: deltafifo.Upsert, Object: object("b", "3"), ResourceVersion: "3"}, // Once more: no change.
		{Type: deltafifo.Bookmark, ResourceVersion: "9"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range applied.Changes {
		fmt.Println(c.Key, c.New.ResourceVersion, c.Initial)
	}
	web, err := cache.ByIndex("app", "web")
	fmt.Println(len(web), "objects, complete up to", cache.ResourceVersion(), err)
	// Output:
	// a 1 true
	// b 2 true
	// b 3 false
	// 2 objects, complete up to 9 <nil>
}
