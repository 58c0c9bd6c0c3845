package ownwrites

import (
	"bytes"
	"io"
	"net/http"

	"github.com/flyball-dev/flyball/reconcile"
)

// maxRefusal bounds what is read of an answer that refuses a write.
const maxRefusal = 64 << 10

// preconditionUID is in the message of an answer that refuses a write because another object has the name.
//
// Source: k8s.io/apiserver v0.37.2 pkg/storage/interfaces.go, Preconditions.Check.
const preconditionUID = "UID in precondition"

// contradicted looks at an answer that refuses a request. When the server has no such object, and a cache has, then the informers and the
// reconcile that asked are told.
func (w *Log) contradicted(r *http.Request, path string, response *http.Response) {
	written, ok := writtenAt(path)
	if !ok || written.Name == "" || w.peer.Caches == nil || !refusesAbsent(response) {
		return
	}
	if err := w.peer.Caches.Contradicted(r.Context(), written); err != nil {
		reconcile.Contradicted(r.Context(), err)
	}
}

// refusesAbsent reports whether the answer says that there is no such object, or another one. Its body can be read again.
func refusesAbsent(response *http.Response) bool {
	switch response.StatusCode {
	case http.StatusNotFound:
		return true
	case http.StatusConflict:
		head, err := io.ReadAll(io.LimitReader(response.Body, maxRefusal))
		response.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(head), response.Body), response.Body}
		return err == nil && bytes.Contains(head, []byte(preconditionUID))
	}
	return false
}
