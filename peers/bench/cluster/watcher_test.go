package cluster

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// TestTracker: a time begins when a step is first seen and ends when the object and its child are as the step wants
// them, whichever comes last. It is reported once.
func TestTracker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := ""
		tr := &tracker{states: map[string]*state{}, report: func(e effect) { got += fmt.Sprint(e) }}
		for _, seen := range []func(){
			func() { tr.see("a", "create", "v1", false) },
			func() { tr.see("a", "create", "v1", true) },
			func() { tr.seeChild("a", "v1") },
			func() { tr.seeChild("a", "v1") },
			func() { tr.see("a", "update", "v2", false) },
			func() { tr.seeChild("b", "v2") },
			func() { tr.seeChild("a", "v2") },
			func() { tr.see("a", "update", "v2", false) },
			func() { tr.see("a", "update", "v2", true) },
			func() { tr.see("a", "delete", "", false) },
			func() { tr.see("a", "delete", "", true) },
			func() { tr.seeChild("a", "") },
		} {
			seen()
			time.Sleep(time.Second)
		}
		if want := "{create 2}{update 4}{delete 2}"; got != want {
			t.Errorf("the effects are %s, want %s", got, want)
		}
	})
}
