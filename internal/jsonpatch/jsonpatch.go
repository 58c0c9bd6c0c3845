package jsonpatch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	kjson "sigs.k8s.io/json"
)

// The bounds of a patch.
//
// Source: k8s.io/apiserver v0.37.2 pkg/endpoints/handlers/patch.go maxJSONPatchOperations, pkg/server/config.go
// JSONPatchMaxCopyBytes; encoding/json maxNestingDepth.
const (
	maxOperations = 10_000
	maxCopies     = 3 << 20   // bytes that all copies of a patch may add together
	maxShifts     = 100 << 20 // elements that all insertions into lists, and removals from them, may move
	maxDepth      = 10_000    // levels of the result
)

// TooManyError is the number of operations of a patch that has too many.
type TooManyError int

// Error implements error.
func (e TooManyError) Error() string {
	return fmt.Sprintf("The allowed maximum operations in a JSON patch is %d, got %d", maxOperations, int(e))
}

var (
	errMissing = errors.New("missing value")
	errDeep    = fmt.Errorf("the result has more than %d levels", maxDepth)
)

// Patch is a decoded JSON patch.
type Patch []operation

type operation struct {
	Op    string          `json:"op"`
	Path  *string         `json:"path"`
	From  *string         `json:"from"`
	Value json.RawMessage `json:"value"`
}

// Decode decodes a JSON patch.
func Decode(data []byte) (Patch, error) {
	var p Patch
	return p, kjson.UnmarshalCaseSensitivePreserveInts(data, &p)
}

// Apply applies the patch to a document, which is an object or a list.
//
// Errors: [TooManyError], that of ctx, and others for a patch that does not apply.
func (p Patch) Apply(ctx context.Context, data []byte) ([]byte, error) {
	if len(p) > maxOperations {
		return nil, TooManyError(len(p))
	}
	root, err := decode(data)
	if err != nil {
		return nil, err
	}
	d := document{root: root}
	for i, o := range p {
		if i%100 == 0 && ctx.Err() != nil { // the client has left
			return nil, ctx.Err()
		}
		if err := d.apply(o); err != nil {
			return nil, err
		}
	}
	return encode(d.root)
}

// Merge applies a JSON merge patch to a document. Both are objects.
func Merge(data, patch []byte) ([]byte, error) {
	root, err := decode(data)
	if err != nil {
		return nil, err
	}
	changes, err := decode(patch)
	if err != nil {
		return nil, err
	}
	into, ok := root.(map[string]any)
	with, ok2 := changes.(map[string]any)
	if !ok || !ok2 {
		return nil, errors.New("a merge patch and what it is for are JSON objects")
	}
	merge(into, with)
	return encode(into)
}

func merge(into, patch map[string]any) {
	for key, v := range patch {
		old, isObject := into[key].(map[string]any)
		changes, alsoObject := v.(map[string]any)
		switch {
		case v == nil:
			delete(into, key)
		case isObject && alsoObject:
			merge(old, changes)
		default:
			if !isObject {
				prune(v)
			}
			into[key] = v
		}
	}
}

// prune removes the fields that are null.
func prune(v any) {
	switch v := v.(type) {
	case map[string]any:
		for key, field := range v {
			if field == nil {
				delete(v, key)
			}
			prune(field)
		}
	case []any:
		for _, element := range v {
			prune(element)
		}
	}
}

// decode decodes a value. Numbers stay as they are written.
func decode(data []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	err = d.Decode(&v)
	return v, err
}

func encode(v any) ([]byte, error) {
	if deeper(v, maxDepth) {
		return nil, errDeep
	}
	return json.Marshal(v)
}

// deeper reports whether v has more than the given number of levels.
func deeper(v any, levels int) bool {
	switch v := v.(type) {
	case map[string]any:
		for _, field := range v {
			if levels == 0 || deeper(field, levels-1) {
				return true
			}
		}
	case []any:
		for _, element := range v {
			if levels == 0 || deeper(element, levels-1) {
				return true
			}
		}
	}
	return false
}
