package deltafifo_test

import (
	"context"
	"fmt"

	"github.com/flyball-dev/flyball/informer/deltafifo"
)

func ExampleNew() {
	log := deltafifo.New[string]()
	for _, s := range []string{"a", "b"} {
		d := deltafifo.Delta[string]{Type: deltafifo.Upsert, Object: s}
		if err := log.Push(context.Background(), d); err != nil {
			fmt.Println(err)
		}
	}
	<-log.Ready()
	batch := log.Take(nil)
	fmt.Println(batch[0].Object, batch[1].Object, log.Len())
	// Output: a b 0
}
