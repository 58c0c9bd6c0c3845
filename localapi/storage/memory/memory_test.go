package memory_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/flyball-dev/flyball/localapi/storage"
	"github.com/flyball-dev/flyball/localapi/storage/memory"
)

func BenchmarkPut(b *testing.B) {
	s := memory.New()
	defer s.Close()
	value := make([]byte, 1024)
	for i := range b.N {
		if _, err := s.Put(b.Context(),
			storage.Write{Key: fmt.Sprintf("t/core/pods/default/%08d", i), Value: value}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "writes/s")
}

func ExampleNew() {
	ctx := context.Background()
	s := memory.New()
	defer s.Close()
	revision, err := s.Put(ctx, storage.Write{Key: "default/core/configmaps/ns/a", Value: []byte("1")})
	fmt.Println(revision, err)
	_, err = s.Put(ctx, storage.Write{Key: "default/core/configmaps/ns/a", Value: []byte("2")})
	fmt.Println(err) // the key was expected not to exist
	revision, err = s.Put(ctx,
		storage.Write{Key: "default/core/configmaps/ns/a", Value: []byte("2"), Expected: revision})
	fmt.Println(revision, err)
	// Output:
	// 2 <nil>
	// revision conflict
	// 3 <nil>
}
