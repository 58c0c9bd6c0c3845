package lean

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Resource is one of the two resources that the replay server has.
type Resource struct {
	// Name is that of the flag, GVK and Plural those of the API.
	Name   string
	GVK    schema.GroupVersionKind
	Plural string
	// Protobuf says how it is encoded; otherwise as JSON.
	Protobuf bool
}

// Resources: pods as protobuf, and the same content as a custom resource, which there is only as JSON.
var Resources = map[string]Resource{
	"pods": {"pods", corev1.SchemeGroupVersion.WithKind("Pod"), "pods", true},
	"workloads": {
		"workloads",
		schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Workload"},
		"workloads", false,
	},
}

// firstVersion is the resource version of the first object. All have as many digits, so that an update is a change in
// place. Those of updates are the time at which they are sent.
const firstVersion = 1_000_000_000_000_000_000

// encode is the i-th object as the server sends it, without envelope.
func (r Resource) encode(i int) ([]byte, error) {
	p := Pod(i, firstVersion+i)
	if r.Protobuf {
		return p.Marshal()
	}
	p.APIVersion, p.Kind = r.GVK.GroupVersion().String(), r.GVK.Kind
	return json.Marshal(p)
}

// Generate writes n encoded objects into a file below dir, each behind its length, and returns its name. What is
// there already is used again.
func (r Resource) Generate(dir string, n int) (string, error) {
	name := filepath.Join(dir, fmt.Sprintf("%s-%d-%d", r.Name, n, Seed))
	if _, err := os.Stat(name); err == nil {
		return name, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	f, err := os.CreateTemp(dir, "generating")
	if err != nil {
		return "", err
	}
	defer f.Close()
	w := bufio.NewWriterSize(f, 1<<20)
	for i := range n {
		data, err := r.encode(i)
		if err != nil {
			return "", err
		}
		_ = binary.Write(w, binary.LittleEndian, uint32(len(data)))
		_, _ = w.Write(data) // The writer remembers its first error.
	}
	if err := w.Flush(); err != nil {
		return "", err
	}
	return name, os.Rename(f.Name(), name)
}

// objects reads a generated file.
type objects struct {
	file *os.File
	n    int
	// bytes is the sum of the lengths of all objects.
	bytes int64
}

func openObjects(name string, n int) (*objects, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return &objects{file: f, n: n, bytes: info.Size() - 4*int64(n)}, nil
}

// each calls f with every object, until it fails. What f is given is valid during the call.
func (o *objects) each(f func([]byte) error) error {
	in := bufio.NewReaderSize(io.NewSectionReader(o.file, 0, o.bytes+4*int64(o.n)), 1<<20)
	var data []byte
	for range o.n {
		var head [4]byte
		if _, err := io.ReadFull(in, head[:]); err != nil {
			return err
		}
		size := int(binary.LittleEndian.Uint32(head[:]))
		if cap(data) < size {
			data = make([]byte, size)
		}
		if _, err := io.ReadFull(in, data[:size]); err != nil {
			return err
		}
		if err := f(data[:size]); err != nil {
			return err
		}
	}
	return nil
}

// some reads the first n objects into memory.
func (o *objects) some(n int) (all [][]byte, err error) {
	err = o.each(func(data []byte) error {
		if len(all) == n {
			return io.EOF
		}
		all = append(all, append([]byte(nil), data...))
		return nil
	})
	if err == io.EOF {
		err = nil
	}
	return all, err
}

// version is a resource version that says when it was made.
func version(at time.Time) string { return strconv.FormatInt(at.UnixNano(), 10) }

// Age is how long ago a resource version was made; false when it is not one of an update.
func Age(v string) (time.Duration, bool) {
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n < firstVersion+firstVersion/10 {
		return 0, false
	}
	return time.Since(time.Unix(0, n)), true
}
