package serving

import (
	"os"
	"slices"
	"sync"
	"time"

	"k8s.io/klog/v2"
)

// reloaded is what was loaded from files that another process replaces now and then.
type reloaded[T any] struct {
	names []string
	// what names the value in the log, and load loads it.
	what string
	load func() (*T, error)

	mu sync.Mutex
	// value is the last one that was loaded without an error, when the files were these. err is why the last attempt to
	// load them failed.
	value  *T
	files  []os.FileInfo
	err    error
	looked time.Time
	loads  Loads
}

// Loads counts how often files were loaded.
type Loads struct {
	Total, Failed int
}

// lookInterval is the minimum time between two checks of the files.
const lookInterval = time.Second

// get returns the value of the files. It reloads them if they have changed, and returns the last good value while they
// cannot be used.
//
// Errors: there was no good value yet.
func (r *reloaded[T]) get() (*T, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lookLocked()
	if r.value == nil {
		return nil, r.err
	}
	return r.value, nil
}

// Err returns why the files as they are now cannot be used, although what was in them before is still used.
func (r *reloaded[T]) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lookLocked()
	return r.err
}

// Loads returns how often the files were loaded.
func (r *reloaded[T]) Loads() Loads {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.loads
}

// lookLocked loads the files if they are others than those of the value. A Secret's volume replaces a symbolic link,
// which leads to other files than before.
func (r *reloaded[T]) lookLocked() {
	if !r.looked.IsZero() && time.Since(r.looked) < lookInterval {
		return
	}
	r.looked = time.Now()
	now := make([]os.FileInfo, len(r.names))
	for i, name := range r.names {
		now[i], _ = os.Stat(name) // load reports the error
	}
	if r.value != nil && slices.EqualFunc(now, r.files, same) {
		r.err = nil
		return
	}
	r.loads.Total++
	value, err := r.load()
	if err == nil {
		r.value, r.files, r.err = value, now, nil
		return
	}
	r.loads.Failed++
	if r.value != nil && (r.err == nil || r.err.Error() != err.Error()) {
		klog.Background().Error(err, "Failed to reload files, using what was in them before", "files", r.names,
			"what", r.what)
	}
	r.err = err
}

// same reports whether a file was not changed.
func same(now, before os.FileInfo) bool {
	return now != nil && before != nil && os.SameFile(now, before) && now.Size() == before.Size() &&
		now.ModTime().Equal(before.ModTime())
}
