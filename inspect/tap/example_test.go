package tap_test

import (
	"fmt"

	"github.com/flyball-dev/flyball/inspect/tap"
)

// A tap that holds everything up.
func ExampleNew() {
	t := tap.New(tap.Options{})
	t.Pause()
	fmt.Println(t.State().Paused, t.Step(tap.Write))
	// Output: true false
}
