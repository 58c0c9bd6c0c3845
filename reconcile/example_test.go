package reconcile_test

import (
	"context"
	"fmt"

	"github.com/flyball-dev/flyball/reconcile"
)

// A controller whose keys are strings. It reconciles a key once, however often the key was queued.
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
