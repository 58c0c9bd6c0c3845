package reflector_test

import (
	"context"
	"fmt"
	"io"

	"github.com/flyball-dev/flyball/informer/deltafifo"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/informer/reflector"
)

// two is a server that has two strings and never changes.
type two struct{}

func (two) List(_ context.Context, _ listwatch.ListOptions, yield func(string) error) (listwatch.ListResult, error) {
	for _, s := range []string{"a", "b"} {
		if err := yield(s); err != nil {
			return listwatch.ListResult{}, err
		}
	}
	return listwatch.ListResult{ResourceVersion: "7"}, nil
}

func (two) Watch(context.Context, listwatch.WatchOptions) (listwatch.Watch[string], error) {
	return two{}, nil
}

func (two) Next(ctx context.Context) (listwatch.Event[string], error) {
	<-ctx.Done()
	return listwatch.Event[string]{}, io.EOF
}

func (two) Close() error { return nil }

func ExampleNew() {
	log := deltafifo.New[string]()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- reflector.New(two{}, log, reflector.Options[string]{Resource: "strings"}).Run(ctx) }()
	<-log.Ready()
	batch := log.Take(nil)
	fmt.Println(batch[0].Type, batch[0].Objects, batch[0].ResourceVersion)
	cancel()
	fmt.Println(<-done)
	// Output:
	// Replace [a b] 7
	// <nil>
}
