package tap_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/flyball-dev/flyball/inspect/tap"
)

// A tap that holds everything up.
func ExampleNew() {
	t := tap.New(tap.Options{})
	t.Pause()
	w := httptest.NewRecorder()
	t.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	fmt.Print(w.Body)
	// Output: {"paused":true,"waiting":[],"faults":["conflict","lost answer","cut watch"]}
}
