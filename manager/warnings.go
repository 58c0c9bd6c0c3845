package manager

import (
	"context"
	"sync"

	"k8s.io/klog/v2"
)

// warnings logs the text of each Warning header once: the server repeats the warning about a deprecated resource with
// every response.
type warnings struct {
	mu sync.Mutex
	// seen holds the texts that were logged. Invariant: it holds at most maxWarnings texts; further ones are not
	// logged.
	seen map[string]struct{}
}

const (
	maxWarnings = 1000
	// miscellaneous is the only warning code that the API server itself sends.
	//
	// Source: RFC 7234 section 5.5.7; client-go v0.37.2 rest/warnings.go.
	miscellaneous = 299
)

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext.
func (w *warnings) HandleWarningHeaderWithContext(ctx context.Context, code int, _, text string) {
	if code == miscellaneous && text != "" && w.isNew(text) {
		klog.FromContext(ctx).Info("Warning from the API server", "warning", text)
	}
}

func (w *warnings) isNew(text string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, old := w.seen[text]; old || len(w.seen) >= maxWarnings {
		return false
	}
	if w.seen == nil {
		w.seen = make(map[string]struct{})
	}
	w.seen[text] = struct{}{}
	return true
}
