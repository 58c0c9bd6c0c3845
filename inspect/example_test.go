package inspect_test

import (
	"fmt"

	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/inspect"
	"github.com/flyball-dev/flyball/manager"
)

// A manager that shows itself at http://127.0.0.1:6060/inspect/.
func ExampleNew() {
	mgr, err := manager.New(&rest.Config{Host: "https://127.0.0.1:6443"}, manager.Options{
		DebugAddr: "127.0.0.1:6060",
		Inspect:   inspect.New(inspect.Options{}),
	})
	fmt.Println(mgr != nil, err)
	// Output: true <nil>
}
