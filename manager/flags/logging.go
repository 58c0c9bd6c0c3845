package flags

import (
	"io"
	"log/slog"
	"strconv"

	"k8s.io/klog/v2"
)

// StartLogging sets how this process logs, libraries included, and returns what undoes it. It is the one thing here that concerns
// the whole process, for klog is the process's.
func (f *Flags) StartLogging(stderr io.Writer) (stop func()) {
	if f.LogFormat != LogJSON {
		return func() {}
	}
	verbosity := 0
	if f.set != nil {
		if v := f.set.Lookup("v"); v != nil {
			verbosity, _ = strconv.Atoi(v.Value.String()) // klog has checked it
		}
	}
	klog.SetSlogLogger(slog.New(slog.NewJSONHandler(stderr, &slog.HandlerOptions{Level: slog.Level(-verbosity)})))
	return klog.ClearLogger
}
