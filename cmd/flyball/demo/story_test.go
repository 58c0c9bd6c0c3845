package demo

import (
	"bytes"
	"regexp"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
)

// TestTroubles plays the story of an answer that gets lost, an API that is away, and a history that is forgotten. The
// log says what the controllers made of them. A reflector waits longer after each failure, so the last step takes long,
// too.
func TestTroubles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := &record{}
		config := textlogger.NewConfig(textlogger.Output(log), textlogger.Verbosity(2))
		ctx := klog.NewContext(t.Context(), textlogger.NewLogger(config))
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
		for _, want := range []string{`the answer has been lost`, `API server is unavailable`, `Watch expired`} {
			if !bytes.Contains(log.text, []byte(want)) {
				t.Errorf("the log does not say %q:\n%s", want, log.text)
			}
		}
	})
}

// record is a log of several goroutines.
type record struct {
	mu   sync.Mutex
	text []byte
}

func (r *record) Write(line []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.text = append(r.text, line...)
	return len(line), nil
}
