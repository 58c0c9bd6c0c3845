// Package review has what the protocols of admission and conversion webhooks share: the API server posts a review in
// JSON, and the webhook answers in JSON.
package review

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/internal/bodies"
)

// maxTimeout is the longest time that an API server waits for a webhook.
//
// Source: k8s.io/api v0.37.2 admissionregistration/v1, TimeoutSeconds.
const maxTimeout = 30 * time.Second

// Context returns the context of the request, which ends when the caller stops waiting. The caller's timeout is in the
// URL, as ?timeout=10s.
func Context(r *http.Request) (context.Context, context.CancelFunc) {
	timeout := maxTimeout
	if r.URL != nil { // nil in a test that calls a handler
		asked, err := time.ParseDuration(r.URL.Query().Get("timeout"))
		if err == nil && asked > 0 && asked < maxTimeout {
			timeout = asked
		}
	}
	return context.WithTimeout(r.Context(), timeout)
}

// problem is an error with the status to answer it with.
type problem struct {
	code int
	text string
}

func (p problem) Error() string { return p.text }

// Failed returns an error that Refuse answers with status 500.
func Failed(err error) error { return problem{http.StatusInternalServerError, err.Error()} }

// NotFound returns an error that Refuse answers with status 404.
func NotFound(err error) error { return problem{http.StatusNotFound, err.Error()} }

// Read returns the body of a request. The method and the media type may be missing, as in a test that calls a handler.
//
// The caller calls release when it no longer needs the body or anything made from it. Until then the body counts
// towards mostBytes.
//
// Errors: the request has another method or media type than a review has; the body is empty, or has more than limit
// bytes, or cannot be read; there is no room.
func Read(r *http.Request, limit int64) (body []byte, release func(), err error) {
	if r.Method != http.MethodPost && r.Method != "" {
		return nil, nil, problem{
			http.StatusMethodNotAllowed, "this is a webhook of an API server: it answers only POST",
		}
	}
	sent := cmp.Or(r.Header.Get("Content-Type"), "application/json")
	if media, _, err := mime.ParseMediaType(sent); err != nil || media != "application/json" {
		return nil, nil, problem{
			http.StatusUnsupportedMediaType, fmt.Sprintf("Content-Type is %q, want application/json", sent),
		}
	}
	if r.Body != nil {
		body, release, err = underWay.Read(r.Body, limit)
	}
	switch {
	case errors.Is(err, bodies.ErrFull):
		return nil, nil, problem{http.StatusServiceUnavailable, fmt.Sprintf("the bodies of the requests under way "+
			"have more than %d MiB: try again later", mostBytes>>20)}
	case err != nil:
		return nil, nil, fmt.Errorf("read the body: %w", err)
	case len(body) == 0:
		return nil, nil, errors.New("the body is empty, want a review in JSON")
	case int64(len(body)) > limit:
		release()
		return nil, nil, problem{
			http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is larger than the limit of %d bytes", limit),
		}
	}
	return body, release, nil
}

// mostBytes is the maximum size of all bodies together that are in use in the process. The objects made from them need
// several times as much memory.
const mostBytes = 256 << 20

var underWay = bodies.New(mostBytes)

// Refuse answers a request that is not a review. The body is a metav1.Status, whose message the API server shows to the
// user of the operation.
func Refuse(w http.ResponseWriter, err error) {
	code := http.StatusBadRequest
	if p := (problem{}); errors.As(err, &p) {
		code = p.code
	}
	send(w, code, metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: reasons[code], Message: err.Error(),
	})
}

var reasons = map[int]metav1.StatusReason{
	http.StatusBadRequest:            metav1.StatusReasonBadRequest,
	http.StatusNotFound:              metav1.StatusReasonNotFound,
	http.StatusMethodNotAllowed:      metav1.StatusReasonMethodNotAllowed,
	http.StatusUnsupportedMediaType:  metav1.StatusReasonUnsupportedMediaType,
	http.StatusRequestEntityTooLarge: metav1.StatusReasonRequestEntityTooLarge,
	http.StatusInternalServerError:   metav1.StatusReasonInternalError,
	http.StatusServiceUnavailable:    metav1.StatusReasonServiceUnavailable,
}

// Answer sends a review.
func Answer(w http.ResponseWriter, review any) { send(w, http.StatusOK, review) }

func send(w http.ResponseWriter, code int, body any) {
	text, err := json.Marshal(body)
	if err != nil { // a handler's answer that is no JSON, such as raw bytes of its own
		klog.Background().Error(err, "Webhook's answer cannot be encoded")
		code = http.StatusInternalServerError
		text, _ = json.Marshal(metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
			Code: int32(code), Reason: reasons[code], Message: fmt.Sprintf("the answer cannot be encoded: %v", err),
		})
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	_, _ = w.Write(append(text, '\n'))
}
