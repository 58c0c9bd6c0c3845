package chapter12

import (
	"bytes"
	"fmt"
	"regexp"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/cmd/flyball/demo"
	"github.com/flyball-dev/flyball/docs/book/internal/book"
)

// TestChapter12Demo plays the story of the lease. It leaves out the counts, which differ from run to run.
func TestChapter12Demo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		o := demo.Options{Speed: 5, Timeout: time.Minute, Scenario: "lease", Out: &out}
		if err := demo.Run(klog.NewContext(t.Context(), klog.Logger{}), o); err != nil {
			t.Fatal(err)
		}
		row := regexp.MustCompile(`(?m)^(\d  .*?)  +(.*?) +watch .* sync +\d+ +(\S+)$`)
		rows := row.FindAllStringSubmatch(out.String(), -1)
		text := ""
		for _, row := range rows {
			took, err := time.ParseDuration(row[3])
			if err != nil {
				t.Fatal(err)
			}
			text += fmt.Sprintf("%-48s  %-27s  %3s\n", row[1], row[2], took.Round(time.Second))
		}
		if len(rows) != 3 || rows[1][2] != "nobody leads" || rows[2][2] != "b leads, 10 of 10 available" {
			t.Errorf("the story: %q", text)
		}
		book.Trace(t, page, text)
	})
}
