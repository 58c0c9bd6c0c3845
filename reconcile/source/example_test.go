package source_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/reconcile/source"
)

// Two controllers in a row: the first one emits the keys that the second one reconciles.
func ExampleNewOutput() {
	ctx, stop := context.WithCancel(context.Background())
	found := source.NewOutput[string]("found")
	first := reconcile.New("first",
		reconcile.Func[string](func(ctx context.Context, key string) (reconcile.Result, error) {
			found.Emit(ctx, key+"'s friend")
			return reconcile.Result{}, nil
		}), reconcile.Options[string]{})
	second := reconcile.New("second",
		reconcile.Func[string](func(ctx context.Context, key string) (reconcile.Result, error) {
			fmt.Printf("%s, because of %s\n", key, reconcile.Causes(ctx)[0].Object)
			stop()
			return reconcile.Result{}, nil
		}), reconcile.Options[string]{})
	if err := second.Watch(found); err != nil {
		fmt.Println(err)
	}
	first.Enqueue("Ann")
	var both sync.WaitGroup
	both.Go(func() { _ = first.Run(ctx) })
	both.Go(func() { _ = second.Run(ctx) })
	both.Wait()
	// Output: Ann's friend, because of first Ann
}
