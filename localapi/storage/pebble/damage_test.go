package pebble_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"

	"github.com/flyball-dev/flyball/localapi/storage"
	"github.com/flyball-dev/flyball/localapi/storage/pebble"
)

// TestDamage flips a bit of every file of a store, at many places. Nothing panics and nothing hangs: whatever was
// stored is there, or an error says which file is damaged. Only damage to the log of a process that was killed may undo
// its last writes: it may look as if the process had been killed in the middle of them.
func TestDamage(t *testing.T) {
	defer goleak.VerifyNone(t)
	for _, c := range []struct {
		name      string
		writes    int
		wasClosed bool
	}{
		{"killed at its first writes", 4, false},
		{"killed", 40, false},
		{"closed at its first writes", 4, true},
		{"closed", 40, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			fs := vfs.NewCrashableMem()
			tr := newTrial(t, fault{}, 0)
			s, err := tr.open(fs)
			if err != nil {
				t.Fatal(err)
			}
			tr.work(s, c.writes)
			killed := fs.CrashClone(vfs.CrashCloneCfg{})
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if !c.wasClosed {
				fs = killed
			}
			t.Log(tr.flip(fs, c.wasClosed))
		})
	}
}

// flip flips bits of all files in turn, and returns what came of it.
func (tr *trial) flip(image *vfs.MemFS, wasClosed bool) map[string]int {
	names, err := image.List("store")
	if err != nil {
		tr.t.Fatal(err)
	}
	newestLog := ""
	for _, name := range names {
		if strings.HasSuffix(name, ".log") {
			newestLog = max(newestLog, name)
		}
	}
	found := map[string]int{}
	for _, name := range names {
		text := readFile(tr.t, image, name)
		for at := 0; at < len(text); at += max(1, len(text)/19) {
			damaged := bytes.Clone(text)
			damaged[at] ^= 0x10
			d := &damage{trial: tr, file: name, mayUndo: name == newestLog && !wasClosed}
			d.what = fmt.Sprintf("%s with byte %d of %d flipped", name, at, len(text))
			fs := image.CrashClone(vfs.CrashCloneCfg{})
			writeFile(tr.t, fs, name, damaged)
			tr.within(d.what, func() { found[kindOf(name)+" "+d.look(fs)]++ })
		}
	}
	return found
}

// TestTablesThatDoNotFit: a table that is missing, truncated or grown is damage, which the error names.
func TestTablesThatDoNotFit(t *testing.T) {
	image, tr := vfs.NewCrashableMem(), newTrial(t, fault{}, 0)
	s, err := tr.open(image)
	if err != nil {
		t.Fatal(err)
	}
	tr.work(s, 40)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	names, err := image.List("store")
	if err != nil {
		t.Fatal(err)
	}
	tables := 0
	for _, name := range names {
		if !strings.HasSuffix(name, ".sst") {
			continue
		}
		tables++
		text := readFile(t, image, name)
		for what, text := range map[string][]byte{
			"missing": nil, "empty": {}, "truncated": text[:len(text)-1], "half": text[:len(text)/2],
			"grown": append(bytes.Clone(text), 0),
		} {
			fs := image.CrashClone(vfs.CrashCloneCfg{})
			if text == nil {
				if err := fs.Remove(fs.PathJoin("store", name)); err != nil {
					t.Fatal(err)
				}
			} else {
				writeFile(t, fs, name, text)
			}
			d := &damage{trial: tr, file: name, what: name + " is " + what}
			if got := d.look(fs); got != "open" {
				t.Errorf("%s: found %s, want an error of Open", d.what, got)
			}
		}
	}
	if tables == 0 {
		t.Error("the store has no tables")
	}
}

func kindOf(name string) string {
	if i := strings.IndexAny(name, "-."); i >= 0 && strings.Trim(name[:i], "0123456789") != "" {
		return name[:i]
	}
	return name[strings.LastIndexByte(name, '.')+1:]
}

type damage struct {
	*trial
	file, what string
	mayUndo    bool // the last two writes
}

// look opens the store and reads everything, and returns what it finds.
func (d *damage) look(fs vfs.FS) string {
	s, err := d.open(fs)
	if err != nil {
		return d.told("open", err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			d.told("close", err)
		}
	}()
	found := "harmless"
	for key, want := range d.answered {
		got, err := s.Get(d.t.Context(), key)
		switch {
		case err != nil && !errors.Is(err, storage.ErrNotFound):
			return d.told("get", err)
		case got.Revision == want.Revision && bytes.Equal(got.Value, want.Value):
		case d.mayUndo && slices.ContainsFunc(d.lastWrites[:], func(w replaced) bool {
			return w.key == key && got.Revision == w.before.Revision && bytes.Equal(got.Value, w.before.Value)
		}):
			found = "undone"
		default:
			d.t.Errorf("%s: %s is at revision %d (%v), stored was %d", d.what, key, got.Revision, err, want.Revision)
			return "LOST"
		}
	}
	if _, err := s.List(d.t.Context(), "", storage.ListOptions{}); err != nil {
		return d.told("list", err)
	}
	return found
}

func (d *damage) told(what string, err error) string {
	damaged := (*pebble.DamagedError)(nil)
	if !errors.As(err, &damaged) || !errors.Is(err, pebble.ErrDamaged) {
		d.t.Errorf("%s: %s: %T %q does not say what is wrong", d.what, what, err, err)
		return "unclear"
	}
	if damaged.File != d.file {
		d.t.Errorf("%s: %s: %q names another file", d.what, what, err)
	}
	if text := err.Error(); strings.Contains(text, "\n") || len(text) > 400 {
		d.t.Errorf("%s: %s: %q is no sentence", d.what, what, text)
	}
	return what
}

func readFile(t *testing.T, fs vfs.FS, name string) []byte {
	t.Helper()
	f, err := fs.Open(fs.PathJoin("store", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func writeFile(t *testing.T, fs vfs.FS, name string, text []byte) {
	t.Helper()
	f, err := fs.Create(fs.PathJoin("store", name), vfs.WriteCategoryUnspecified)
	if err == nil {
		_, err = f.Write(text)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}
