package pebble

import (
	"errors"
	"fmt"
	"runtime"
	"strings"

	"k8s.io/klog/v2"
)

// logger passes the engine's log on to ours, line by line.
type logger struct {
	klog.Logger
	disk *disk
}

// Infof logs what the engine does: flushes, compactions, new files.
func (l logger) Infof(format string, args ...any) {
	if l := l.V(5); l.Enabled() {
		l.Info("Storage engine", "message", line(format, args))
	}
}

// Errorf logs failures in the background that the engine retries.
func (l logger) Errorf(format string, args ...any) {
	l.Error(nil, "Storage engine", "message", line(format, args))
}

// Fatalf must not return: the engine no longer knows what is on disk. If the store called the engine, Fatalf panics,
// and [disk.guard] converts the panic into an error. In a goroutine of the engine, where nobody could recover, it ends
// the goroutine. Failures of the disk never get here, because disk keeps them from the engine. So the cause is a defect
// of the engine, or damage that it took for data.
func (l logger) Fatalf(format string, args ...any) {
	err := errors.New("storage engine: " + line(format, args))
	l.disk.broken.Store(true)
	l.disk.freeze(&FailedError{Dir: l.disk.dir, Err: err})
	if guarded() {
		panic(err)
	}
	runtime.Goexit()
}

// guarded reports whether the calling goroutine is within [disk.guard].
func guarded() bool {
	callers := make([]uintptr, 100)
	frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers)])
	for more := true; more; {
		var frame runtime.Frame
		frame, more = frames.Next()
		if strings.HasSuffix(frame.Function, "/storage/pebble.(*disk).guard") {
			return true
		}
	}
	return false
}

// guard calls the engine, and converts a panic in it into an error.
func (d *disk) guard(call func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			d.broken.Store(true)
			d.freeze(&FailedError{Dir: d.dir, Err: fmt.Errorf("storage engine: %v", r)})
			err = d.err
		}
	}()
	return call()
}

func line(format string, args []any) string {
	return strings.TrimSpace(fmt.Sprintf(format, args...))
}
