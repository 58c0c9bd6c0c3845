package pebble

import (
	"errors"
	"fmt"
	"runtime"
	"strings"

	"k8s.io/klog/v2"
)

// logger is the engine's log as lines of ours.
type logger struct {
	klog.Logger
	disk *disk
}

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

// Fatalf must not return: the engine does not know what is on disk. A call of ours is ended by a panic, which [disk.guard] makes an
// error; a goroutine of the engine's own, where nobody could recover, just ends. What disk keeps from the engine is not among the
// causes, so this is a defect of the engine, or damage that it took for data.
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

// guard calls the engine, and makes an error of a panic in it.
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
