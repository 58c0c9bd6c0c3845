package handlers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

func operations(t testing.TB, text string) jsonpatch.Patch {
	t.Helper()
	patch, err := jsonpatch.DecodePatch([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return patch
}

// TestCopiesAreBounded: a patch that doubles what it copies ends before it fills the memory, with the answer of
// a kube-apiserver.
func TestCopiesAreBounded(t *testing.T) {
	document := []byte(`{"data":{"k":"` + strings.Repeat("x", 200_000) + `"}}`)
	var copies []string
	for i := range 6 {
		copies = append(copies, fmt.Sprintf(`{"op":"copy","from":"/data","path":"/data/c%d"}`, i))
	}
	after, err := applyJSONPatch(t.Context(), operations(t, "["+strings.Join(copies, ",")+"]"), document)
	if status, ok := err.(apierrors.APIStatus); !ok || status.Status().Code != 422 {
		t.Fatalf("%d bytes, %v", len(after), err)
	}
	if _, err := applyJSONPatch(t.Context(), operations(t, "["+strings.Join(copies[:3], ",")+"]"),
		document); err != nil {
		t.Errorf("a megabyte of copies: %v", err)
	}
}

func TestOperationsAreBounded(t *testing.T) {
	patch := make(jsonpatch.Patch, maxPatchOperations+1)
	if _, err := applyJSONPatch(t.Context(), patch, []byte("{}")); !apierrors.IsRequestEntityTooLargeError(err) {
		t.Error(err)
	}
}

// leaving is the context of a client that leaves when it has been asked for a number of times.
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
	for op, times := range map[string]int{
		`{"op":"test","path":"/a","value":1}`:        3,
		`{"op":"copy","from":"/a","path":"/copied"}`: 999,
	} {
		patch := operations(t, "["+strings.Repeat(op+",", 999)+op+"]")
		ctx := &leaving{Context: t.Context(), times: times}
		if _, err := applyJSONPatch(ctx, patch, []byte(`{"a":1}`)); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", op, err)
		}
	}
}

// TestPatchInPiecesEqualsThePatch: a patch that is applied in pieces does what the library does with it at once.
func TestPatchInPiecesEqualsThePatch(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	paths := []string{"/a", "/b", "/b/0", "/b/-1", "/b/-", "/c", "/c/d", "/c~1d", "/c/d/e", "/none/x", "", "a"}
	values := []string{"1", "null", `"x"`, `{"d":{}}`, "[1,2]", "{}"}
	for i := range 300 {
		var ops []string
		for range r.IntN(2*operationsAtOnce) + 1 {
			kind := []string{"add", "copy", "copy", "replace", "test", "move", "remove"}[r.IntN(7)]
			if len(ops) < operationsAtOnce && kind != "copy" {
				kind = "add"
			}
			ops = append(ops, fmt.Sprintf(`{"op":%q,"path":%q,"from":%q,"value":%s}`,
				kind, paths[r.IntN(len(paths)*(1+i%2)/2)], paths[r.IntN(len(paths))], values[r.IntN(len(values))]))
		}
		text := "[" + strings.Join(ops[:1+r.IntN(len(ops))], ",") + "]"
		document := []byte(`{"a":1,"b":[1,{"x":2}],"c":{"d":{}},"c/d":true}`)
		want, wantErr := applyPiece(operations(t, text), document)
		got, err := applyJSONPatch(t.Context(), operations(t, text), document)
		if (err == nil) != (wantErr == nil) || (err == nil && !sameJSON(t, got, want)) {
			t.Fatalf("%s\n got %s %v\nwant %s %v", text, got, err, want, wantErr)
		}
	}
}

func sameJSON(t *testing.T, a, b []byte) bool {
	t.Helper()
	var x, y any
	if err := errors.Join(json.Unmarshal(a, &x), json.Unmarshal(b, &y)); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(x) == fmt.Sprint(y)
}

func TestValueAt(t *testing.T) {
	document := json.RawMessage(`{"a":[1,{"b/c":"x"}],"":2}`)
	for pointer, want := range map[string]string{
		"/a/0": "1", "/a/-1": `{"b/c":"x"}`, "/a/1/b~1c": `"x"`, "/": "2", "/a/2": "", "/a/-3": "", "/a/x": "",
		"/n/m": "",
		"":     string(document),
	} {
		if got := string(valueAt(document, pointer)); got != want {
			t.Errorf("%q: %s, want %s", pointer, got, want)
		}
	}
}
