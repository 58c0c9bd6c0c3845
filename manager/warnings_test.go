package manager

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
)

func TestWarningsAreLoggedOnce(t *testing.T) {
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
	ctx := klog.NewContext(t.Context(), logger)
	w := &warnings{}
	for range 3 {
		w.HandleWarningHeaderWithContext(ctx, 299, "-", "v1 Endpoints is deprecated")
		w.HandleWarningHeaderWithContext(ctx, 110, "-", "a cache's own warning")
		w.HandleWarningHeaderWithContext(ctx, 299, "-", "")
	}
	w.HandleWarningHeaderWithContext(ctx, 299, "-", "another")
	logged := logger.GetSink().(ktesting.Underlier).GetBuffer().String()
	if strings.Count(logged, "Warning from the API server") != 2 ||
		!strings.Contains(logged, "v1 Endpoints is deprecated") {
		t.Errorf("logged:\n%s", logged)
	}
	for i := range 2 * maxWarnings {
		w.HandleWarningHeaderWithContext(t.Context(), 299, "-", fmt.Sprint(i))
	}
	if len(w.seen) != maxWarnings {
		t.Errorf("%d texts are remembered, want %d at most", len(w.seen), maxWarnings)
	}
}
