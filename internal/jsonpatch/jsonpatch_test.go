package jsonpatch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	library "gopkg.in/evanphx/json-patch.v4"
)

func apply(t testing.TB, patch, document string) ([]byte, error) {
	t.Helper()
	p, err := Decode([]byte(patch))
	if err != nil {
		t.Fatal(err)
	}
	return p.Apply(t.Context(), []byte(document))
}

// allocated returns the number of bytes that f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// byLibrary applies a patch with the library, which panics if an operation adds to a null.
func byLibrary(t *testing.T, patch, document string) (after []byte, err error) {
	t.Helper()
	defer func() {
		if recover() != nil {
			err = errors.New("panic")
		}
	}()
	p, err := library.DecodePatch([]byte(patch))
	if err != nil {
		t.Fatal(err)
	}
	return p.Apply([]byte(document))
}

// TestApplyEqualsTheLibrary: results and errors are those of the library.
func TestApplyEqualsTheLibrary(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	paths := []string{
		"/a", "/b", "/b/0", "/b/-1", "/b/-", "/b/-9", "/b/9", "/b/x", "/c", "/c/d", "/c~1d", "/c/d/e", "/none/x", "",
		"a", "/n/x", "/l/0/0", "/l/0/-", "/b/+1", "/b/01", "/b/-0", "/", "//", "/~2", "/~01", "x/a",
	}
	values := []string{
		"1", "null", `"x"`, `{"d":{}}`, "[1,2]", "{}", "1.50", "12345678901234567890", "1.0", "1E400", `[{"x":null}]`,
	}
	kinds := []string{"add", "add", "copy", "replace", "test", "move", "remove", "other"}
	failed := map[string]int{}
	for i := range 20_000 {
		var ops []string
		for range 1 + r.IntN(4) {
			ops = append(ops, fmt.Sprintf(`{"op":%q,"path":%q,"from":%q,"value":%s}`, kinds[r.IntN(len(kinds))],
				paths[r.IntN(len(paths)*(1+i%2)/2)], paths[r.IntN(len(paths))], values[r.IntN(len(values))]))
		}
		patch := "[" + strings.Join(ops, ",") + "]"
		document := `{"a":1,"b":[1,{"x":2}],"c":{"d":{}},"c/d":true,"n":null,"l":[[1]],"f":1.0}`
		want, wantErr := byLibrary(t, patch, document)
		got, err := apply(t, patch, document)
		if wantErr != nil {
			failed[kinds[i%len(kinds)]]++
		}
		switch {
		case (err == nil) != (wantErr == nil), err == nil && !bytes.Equal(got, want):
			t.Fatalf("%s\n got %s %v\nwant %s %v", patch, got, err, want, wantErr)
		case err != nil && err.Error() != wantErr.Error() && wantErr.Error() != "panic" &&
			!strings.Contains(wantErr.Error(), "%!w"):
			t.Fatalf("%s\n got %v\nwant %v", patch, err, wantErr)
		}
	}
	if len(failed) != len(kinds)-1 {
		t.Errorf("patches that fail: %v", failed)
	}
}

// TestStringsAreCompared: RFC 6902, section 4.6, whatever the escapes.
func TestStringsAreCompared(t *testing.T) {
	patch := `[{"op":"test","path":"/a","value":"\u003c\u00e9"},{"op":"test","path":"/b","value":"<é"}]`
	if _, err := apply(t, patch, `{"a":"<é","b":"\u003cé"}`); err != nil {
		t.Error(err)
	}
}

func TestMergeEqualsTheLibrary(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var value func(depth int) any
	value = func(depth int) any {
		n := 5
		if depth == 0 {
			n = 3
		}
		switch r.IntN(n) {
		case 0:
			return nil
		case 1:
			return json.Number("1.0")
		case 2:
			return "x"
		case 3:
			return []any{value(depth - 1), value(depth - 1)}
		}
		fields := map[string]any{}
		for _, key := range []string{"a", "b", "c"} {
			if r.IntN(3) > 0 {
				fields[key] = value(depth - 1)
			}
		}
		return fields
	}
	for range 20_000 {
		document, _ := json.Marshal(map[string]any{"a": value(3), "b": value(3)})
		patch, _ := json.Marshal(map[string]any{"a": value(3), "b": value(3), "c": value(3)})
		want, err := library.MergePatch(document, patch)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := Merge(document, patch); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%s of %s\n got %s %v\nwant %s", patch, document, got, err, want)
		}
	}
}

// TestCopiesAreBounded: a patch that doubles what it copies ends before it fills the memory.
func TestCopiesAreBounded(t *testing.T) {
	document := `{"data":{"k":"` + strings.Repeat("x", 200_000) + `"}}`
	var copies []string
	for i := range 40 {
		copies = append(copies, fmt.Sprintf(`{"op":"copy","from":"/data","path":"/data/c%d"}`, i))
	}
	want := "Unable to complete the copy, the accumulated size increase of copy is 6200404, exceeding the limit 3145728"
	got := allocated(func() {
		if _, err := apply(t, "["+strings.Join(copies, ",")+"]", document); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	})
	if got > 64<<20 {
		t.Errorf("the patch allocates %d bytes", got)
	}
	if _, err := apply(t, "["+strings.Join(copies[:3], ",")+"]", document); err != nil {
		t.Errorf("a megabyte of copies: %v", err)
	}
}

// TestSmallCopiesAreCheap: the cost of a small copy does not depend on the size of the document.
func TestSmallCopiesAreCheap(t *testing.T) {
	document := `{"a":1,"data":{"k":"` + strings.Repeat("x", 1_000_000) + `"}}`
	const op = `{"op":"copy","from":"/a","path":"/data/a"}`
	patch := "[" + strings.Repeat(op+",", 999) + op + "]"
	got := allocated(func() {
		if _, err := apply(t, patch, document); err != nil {
			t.Error(err)
		}
	})
	if got > 16<<20 {
		t.Errorf("1,000 copies of a byte allocate %d bytes", got)
	}
}

// TestDeepDocumentsAreCheap: a nested value is not parsed again at every level.
func TestDeepDocumentsAreCheap(t *testing.T) {
	const levels = 2000
	text := strings.Repeat("x", 100_000)
	document := strings.Repeat(`{"a":`, levels) + `"` + text + `"` + strings.Repeat("}", levels)
	path := strings.Repeat("/a", levels)
	for name, run := range map[string]func() error{
		"patch": func() error {
			_, err := apply(t, `[{"op":"replace","path":"`+path+`","value":1}]`, document)
			return err
		},
		"merge patch": func() error {
			_, err := Merge([]byte(document), []byte(document))
			return err
		},
	} {
		got := allocated(func() {
			if err := run(); err != nil {
				t.Error(err)
			}
		})
		if got > 16<<20 {
			t.Errorf("a %s allocates %d bytes", name, got)
		}
	}
}

// TestDepthIsBounded: moves and copies can nest a document deeper than one that can be decoded.
func TestDepthIsBounded(t *testing.T) {
	half := strings.Repeat(`{"a":`, 6000) + "1" + strings.Repeat("}", 6000)
	path := "/x" + strings.Repeat("/a", 6000)
	for _, op := range []string{"move", "copy"} {
		patch := fmt.Sprintf(`[{"op":"add","path":"/x","value":%s},{"op":"add","path":"/y","value":%s},`+
			`{"op":%q,"from":"/y","path":%q},{"op":"copy","from":"/x","path":"/z"}]`, half, half, op, path)
		if _, err := apply(t, patch, "{}"); !errors.Is(err, errDeep) {
			t.Errorf("%s: %v, want %v", op, err, errDeep)
		}
	}
}

// TestShiftsAreBounded: operations at the front of a long list move all its elements.
func TestShiftsAreBounded(t *testing.T) {
	document := `{"l":[` + strings.Repeat("0,", 500_000) + "0]}"
	for _, op := range []string{`{"op":"add","path":"/l/0","value":1}`, `{"op":"remove","path":"/l/0"}`} {
		patch := "[" + strings.Repeat(op+",", 300) + op + "]"
		if _, err := apply(t, patch, document); err == nil || !strings.Contains(err.Error(), "moves more than") {
			t.Errorf("%s: %v", op, err)
		}
	}
}

func TestOperationsAreBounded(t *testing.T) {
	_, err := make(Patch, maxOperations+1).Apply(t.Context(), []byte("{}"))
	want := "The allowed maximum operations in a JSON patch is 10000, got 10001"
	if many := TooManyError(0); !errors.As(err, &many) || err.Error() != want {
		t.Error(err)
	}
}

// leaving is the context of a client that leaves after a number of checks.
type leaving struct {
	context.Context
	times int
}

func (l *leaving) Err() error {
	if l.times--; l.times < 0 {
		return context.Canceled
	}
	return nil
}

// TestPatchStopsWhenItsClientLeaves: it does so between operations, not at the end.
func TestPatchStopsWhenItsClientLeaves(t *testing.T) {
	p, err := Decode([]byte("[" + strings.Repeat(`{"op":"test","path":"/a","value":1},`, 999) + `{"op":"none"}]`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Apply(&leaving{t.Context(), 5}, []byte(`{"a":1}`)); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
