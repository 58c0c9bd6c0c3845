package pebble

import (
	"fmt"
	"strings"

	"k8s.io/klog/v2"
)

// logger is the engine's log as lines of ours.
type logger struct{ klog.Logger }

// Infof tells what the engine does: flushes, compactions, new files.
func (l logger) Infof(format string, args ...any) {
	if l := l.V(5); l.Enabled() {
		l.Info("Storage engine", "message", line(format, args))
	}
}

// Errorf tells what went wrong in the background and is tried again.
func (l logger) Errorf(format string, args ...any) {
	l.Error(nil, "Storage engine", "message", line(format, args))
}

// Fatalf must not return: the engine does not know what is on disk. Whoever finds the store again finds what was answered.
func (l logger) Fatalf(format string, args ...any) {
	panic("storage engine: " + line(format, args))
}

func line(format string, args []any) string {
	return strings.TrimSpace(fmt.Sprintf(format, args...))
}
