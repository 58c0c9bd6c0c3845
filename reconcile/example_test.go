package reconcile_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/flyball-dev/flyball/reconcile"
)

// A controller of plain strings: the reconciler is called once for a key however often it was queued.
func ExampleNew() {
	ctx, stop := context.WithCancel(context.Background())
	greet := reconcile.Func[string](func(_ context.Context, name string) (reconcile.Result, error) {
		fmt.Println("hello,", name)
		stop()
		return reconcile.Result{}, nil
	})
	c := reconcile.New("greeter", greet, reconcile.Options[string]{})
	c.Enqueue("flyball")
	c.Enqueue("flyball")
	if err := c.Run(ctx); err != nil {
		fmt.Println(err)
	}
	// Output: hello, flyball
}

// Two controllers in a row: the first finds out what the second has to do.
func ExampleNewOutput() {
	ctx, stop := context.WithCancel(context.Background())
	found := reconcile.NewOutput[string]("found")
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
