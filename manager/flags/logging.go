package flags

import (
	"io"
	"log/slog"
	"strconv"

	"k8s.io/klog/v2"
)

// StartLogging configures logging for this process, libraries included, and returns a function that undoes it. It is
// the only function here with an effect on the whole process, because klog is global.
func (f *Flags) StartLogging(stderr io.Writer) (stop func()) {
	if f.LogFormat != LogJSON {
		return func() {}
	}
	verbosity := 0
	if f.set != nil {
		if v := f.set.Lookup("v"); v != nil {
			verbosity, _ = strconv.Atoi(v.Value.String()) // klog has validated it
		}
	}
	klog.SetSlogLogger(slog.New(slog.NewJSONHandler(stderr, &slog.HandlerOptions{Level: slog.Level(-verbosity)})))
	return klog.ClearLogger
}
