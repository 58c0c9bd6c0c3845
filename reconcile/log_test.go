package reconcile

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

// TestLogNamesTheControllerOnce: a logger that writes JSON writes each value that it is given, even twice under one
// name. Some parsers reject such an object, others drop a value.
func TestLogNamesTheControllerOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		logger := logr.FromSlogHandler(slog.NewJSONHandler(&out, nil))
		ctx, stop := context.WithCancel(klog.NewContext(t.Context(), logger))
		r := Func[string](func(ctx context.Context, _ string) (Result, error) {
			klog.FromContext(ctx).Info("Reconciling")
			return Result{}, errors.New("broken")
		})
		c := New("c", r, Options[string]{MaxRetries: 1})
		c.Enqueue("a")
		done := make(chan error, 1) // one send, by the goroutine below
		go func() { done <- c.Run(ctx) }()
		time.Sleep(time.Minute)
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		for _, message := range []string{"Reconciling", "Reconcile failed; giving up", "Stopped"} {
			if !strings.Contains(out.String(), message) {
				t.Errorf("nothing says %q:\n%s", message, &out)
			}
		}
		for line := range strings.Lines(out.String()) {
			if strings.Count(line, `"controller":"c"`) != 1 || strings.Count(line, `"key":`) > 1 {
				t.Errorf("a key twice, or no controller: %s", line)
			}
		}
	})
}
