package pebble

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"

	engine "github.com/cockroachdb/pebble/v2"
	"k8s.io/klog/v2"
)

// ErrFailed means that the disk under a store failed: it is full, read-only, or broken. The store takes no writes until
// it is opened again. What was answered before is stored; a write that got this error may be stored, too.
var ErrFailed = errors.New("the disk under the store failed")

// ErrDamaged means that a file of a store does not hold what was written to it. The error's text names the file.
var ErrDamaged = errors.New("the store is damaged")

// failedError is an [ErrFailed].
type failedError struct {
	Dir string
	Err error
}

// Is implements the interface of errors.Is.
func (e *failedError) Is(target error) bool { return target == ErrFailed }

func (e *failedError) Error() string {
	advice := "see to the disk"
	switch {
	case errors.Is(e.Err, fs.ErrPermission): // Most likely the store was never open, so nothing was answered.
		return fmt.Sprintf("this user may not write the store in %s: %v", e.Dir, e.Err)
	case errors.Is(e.Err, syscall.ENOSPC) || errors.Is(e.Err, syscall.EDQUOT):
		advice = "make room"
	case tooManyFiles(e.Err):
		advice = "allow more open files (ulimit -n)"
	}
	return fmt.Sprintf(
		"the store in %s takes no more writes: %v. What it answered before is stored: %s, and start again", e.Dir,
		e.Err, advice,
	)
}

func (e *failedError) Unwrap() error { return e.Err }

// damagedError is an [ErrDamaged].
type damagedError struct {
	Dir string
	// File is the name of the file in Dir, or "" if it is not known.
	File string
	Err  error
}

// Is implements the interface of errors.Is.
func (e *damagedError) Is(target error) bool { return target == ErrDamaged }

func (e *damagedError) Error() string {
	file := cmp.Or(e.File, "some file")
	return fmt.Sprintf("the store in %s is damaged, in %s: %v. Put a backup in its place; without one, move the "+
		"directory away and apply the objects anew", e.Dir, file, e.Err)
}

func (e *damagedError) Unwrap() error { return e.Err }

// errDamaged marks damage in this package's own entries.
var errDamaged = errors.New("it does not hold what was written")

// damaged converts an error that reports damage into a damagedError, and returns others unchanged.
func (d *disk) damaged(err error) error {
	var is *damagedError
	if err == nil || errors.As(err, &is) || !errors.Is(err, errDamaged) && !engine.IsCorruptionError(err) {
		return err
	}
	if info := engine.ExtractDataCorruptionInfo(err); info != nil {
		return &damagedError{Dir: d.dir, File: filepath.Base(info.Path), Err: info.Details}
	}
	return &damagedError{Dir: d.dir, File: d.lastRead(), Err: err}
}

// inconsistent is how the engine says at its start that a table is not as the manifest says.
var inconsistent = regexp.MustCompile(`^L\d+: (\d+): (object size mismatch)?`)

// misfit converts the error of an engine that finds a table missing, or of another size, into a damagedError. It
// returns nil for another error.
func (d *disk) misfit(err error) error {
	m := inconsistent.FindStringSubmatch(err.Error())
	switch {
	case m == nil, m[2] == "" && !errors.Is(err, fs.ErrNotExist):
		return nil
	case m[2] == "":
		err = errors.New("it is missing")
	default:
		err = errors.New("it has another size than the manifest says")
	}
	return &damagedError{Dir: d.dir, File: m[1] + ".sst", Err: err}
}

// failureOf returns the reason to take no more writes after an error in the background.
func (d *disk) failureOf(err error) error {
	if err := d.damaged(err); errors.As(err, new(*damagedError)) {
		return err
	}
	return &failedError{Dir: d.dir, Err: err}
}

// explain returns the reason why a store cannot be opened.
func (d *disk) explain(err error) error {
	if err = d.damaged(err); err == nil {
		return nil
	}
	if misfit := d.misfit(err); misfit != nil {
		return misfit
	}
	switch {
	case errors.As(err, new(*damagedError)), errors.As(err, new(*failedError)),
		errors.As(err, new(*inUseError)):
		return err
	case errors.As(err, new(syscall.Errno)) && !errors.Is(err, syscall.ENOTDIR):
		return &failedError{Dir: d.dir, Err: pathError("open", d.dir, err)}
	case strings.HasPrefix(d.lastRead(), "OPTIONS-"):
		return &damagedError{Dir: d.dir, File: d.lastRead(), Err: err}
	}
	return fmt.Errorf("open the store in %s: %w", d.dir, err)
}

// pathError adds the operation and the file, unless err names them already.
func pathError(op, name string, err error) error {
	if path := (*fs.PathError)(nil); errors.As(err, &path) {
		return err
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}

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
	l.disk.freeze(&failedError{Dir: l.disk.dir, Err: err})
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
			d.freeze(&failedError{Dir: d.dir, Err: fmt.Errorf("storage engine: %v", r)})
			err = d.err
		}
	}()
	return call()
}

func line(format string, args []any) string {
	return strings.TrimSpace(fmt.Sprintf(format, args...))
}
