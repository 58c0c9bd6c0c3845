package handlers

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The limits of a JSON patch.
//
// Source: k8s.io/apiserver v0.37.2 pkg/endpoints/handlers/patch.go maxJSONPatchOperations, pkg/server/config.go
// JSONPatchMaxCopyBytes.
const (
	maxPatchOperations = 10000
	maxPatchCopies     = 3 << 20 // bytes that all copies of a patch may add together
)

// operationsAtOnce is how many operations of a JSON patch run between two checks whether the client is still there.
const operationsAtOnce = 100

// applyJSONPatch applies a JSON patch to a document.
//
// The library bounds the size of copies with a variable of the whole process, which this package must not set. So the
// patch is applied in pieces. Each piece has at most one copy, as its first operation, so the size of the copy is known
// before it is made.
//
// Errors: RequestEntityTooLarge, 422 for a patch that does not apply, and ctx's.
func applyJSONPatch(ctx context.Context, patch jsonpatch.Patch, document []byte) ([]byte, error) {
	if len(patch) > maxPatchOperations {
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf(
			"The allowed maximum operations in a JSON patch is %d, got %d", maxPatchOperations, len(patch)))
	}
	copied := int64(0)
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if copied += copiedBy(patch, document); copied > maxPatchCopies {
			return nil, unprocessable(jsonpatch.NewAccumulatedCopySizeError(maxPatchCopies, copied))
		}
		n := pieceOf(patch)
		next, err := applyPiece(patch[:n], document)
		if err != nil {
			return nil, unprocessable(err)
		}
		if document, patch = next, patch[n:]; len(patch) == 0 {
			return document, nil
		}
	}
}

// applyPiece applies operations with the library, which panics if an operation adds to a null.
func applyPiece(patch jsonpatch.Patch, document []byte) (after []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the patch does not apply: %v", p)
		}
	}()
	return patch.Apply(document)
}

// pieceOf returns the number of operations to apply at once: those before the next copy.
func pieceOf(patch jsonpatch.Patch) int {
	for i := 1; i < len(patch); i++ {
		if i == operationsAtOnce || patch[i].Kind() == "copy" {
			return i
		}
	}
	return len(patch)
}

// copiedBy returns the size of what a patch copies with its first operation. It is 0 if the copy will fail.
func copiedBy(patch jsonpatch.Patch, document []byte) int64 {
	if len(patch) == 0 || patch[0].Kind() != "copy" {
		return 0
	}
	from, err := patch[0].From()
	if err != nil {
		return 0
	}
	return int64(len(valueAt(document, from)))
}

// valueAt returns the value that a JSON pointer leads to, or nil if there is none.
func valueAt(document json.RawMessage, pointer string) json.RawMessage {
	keys := strings.Split(pointer, "/")
	for _, key := range keys[1:] {
		key = strings.NewReplacer("~1", "/", "~0", "~").Replace(key)
		var fields map[string]json.RawMessage
		if json.Unmarshal(document, &fields) == nil {
			document = fields[key]
			continue
		}
		var elements []json.RawMessage
		i, err := strconv.Atoi(key)
		if err != nil || json.Unmarshal(document, &elements) != nil {
			return nil
		}
		if i < 0 {
			i += len(elements) // like the library: -1 is the last
		}
		if i < 0 || i >= len(elements) {
			return nil
		}
		document = elements[i]
	}
	return document
}

// unprocessable returns the error for a patch that can be parsed, but not applied.
func unprocessable(err error) error {
	return apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "",
		err.Error(), 0, false)
}
