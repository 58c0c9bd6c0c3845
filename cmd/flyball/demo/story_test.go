package demo

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
)

// TestTroubles plays the story of an answer that gets lost, an API that is away, and a history that is forgotten. The
// log says what the controllers made of them. A reflector waits longer after each failure, so the last step takes long,
// too.
func TestTroubles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		config := ktesting.NewConfig(ktesting.BufferLogs(true), ktesting.Verbosity(2))
		logger := ktesting.NewLogger(ktesting.NopTL{}, config)
		ctx := klog.NewContext(t.Context(), logger)
		o := Options{Speed: 5, Timeout: time.Minute, Scenario: "away", Out: &out}
		if err := Run(ctx, o); err != nil {
			t.Fatal(err)
		}
		rows := regexp.MustCompile(`(?m)^\d .* sync +\d+ +(\S+)$`).FindAllStringSubmatch(out.String(), -1)
		if len(rows) != 4 {
			t.Fatalf("got %s", &out)
		}
		for i, row := range rows {
			took, err := time.ParseDuration(row[1])
			if away := i >= 2; err != nil || away != (took >= awayFor) || took > 4*awayFor {
				t.Errorf("step %d took %s, %v", i+1, took, err)
			}
		}
		log := logger.GetSink().(ktesting.Underlier).GetBuffer().String()
		for _, want := range []string{`the answer has been lost`, `API server is unavailable`, `Watch expired`} {
			if !strings.Contains(log, want) {
				t.Errorf("the log does not say %q:\n%s", want, log)
			}
		}
	})
}
