package gate

import (
	"context"
	"net/http"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// Request is an operation as the server understood it.
type Request struct {
	// get, list, watch, create, update, patch, delete, deletecollection; "" for other methods; for other paths the
	// lower-case method
	Verb        string
	Path        string
	Query       url.Values // read-only
	Group       string
	Version     string
	Resource    string // "" for paths outside resources
	Subresource string
	Namespace   string
	Name        string      // "" for a create, whose name is in the body
	UserAgent   string      //
	User        string      // the sender, which may ask in Header to act as another user
	Header      http.Header // the request's, read-only
}

// Mutates reports whether the request can change something.
func (r *Request) Mutates() bool {
	switch r.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return true
	}
	return false
}

// Answer is the response that the server is about to send.
type Answer struct {
	Code            int
	Name            string // of the object; of a create: the name that the object got, or would have got
	ResourceVersion string // of the object or list in the answer; "" if there is none
}

// Frame is one event of a watch that the server is about to send.
type Frame struct {
	Type            watch.EventType
	Namespace, Name string
	ResourceVersion string
	Initial         bool // of an object that existed when the watch began
}

// Action says what the server does with a request, an answer or a frame.
type Action int

// The actions. Where an action makes no sense, it means [Pass].
const (
	// Pass lets it through. It is the zero verdict.
	Pass Action = iota

	// Fail answers with Verdict.Status instead. Before: the request has no effect. After: the effect stays. Frame: the
	// status is sent as an ERROR event, and the watch ends.
	Fail

	// Drop loses it. Before: the connection breaks, and the request has no effect. After: the connection breaks, and
	// the effect stays. Frame: this frame is left out, and the watch goes on.
	Drop

	// Truncate breaks the connection in the middle of the answer (After) or of the frame.
	Truncate

	// Repeat does it twice. Before: the operation takes effect twice, and the second answer is sent. Frame: the frame
	// is sent twice.
	Repeat

	// Close ends a watch before this frame, in an orderly way.
	Close

	// Garbage sends bytes that cannot be decoded instead of this frame, and the watch goes on.
	Garbage

	// Bookmark sends a bookmark before this frame, even to a client that did not ask for bookmarks.
	Bookmark
)

// Verdict is a gate's decision.
type Verdict struct {
	Action Action

	// Status is the status to fail with.
	Status *metav1.Status

	// AsOf, if not 0, is the revision to answer from. A get or list (Before) returns the state as of that revision, as
	// a lagging replica does, and a watch without a resource version starts there.
	AsOf int64
}

// Gate decides what happens to requests, answers and frames.
type Gate interface {
	Before(ctx context.Context, r *Request) Verdict
	After(ctx context.Context, r *Request, a Answer) Verdict
	Frame(ctx context.Context, r *Request, f Frame) Verdict
}

// Funcs is a [Gate] made of functions. A nil function lets everything pass.
type Funcs struct {
	OnRequest func(ctx context.Context, r *Request) Verdict
	OnAnswer  func(ctx context.Context, r *Request, a Answer) Verdict
	OnFrame   func(ctx context.Context, r *Request, f Frame) Verdict
}

var _ Gate = Funcs{}

// Before implements [Gate].
func (g Funcs) Before(ctx context.Context, r *Request) Verdict {
	if g.OnRequest == nil {
		return Verdict{}
	}
	return g.OnRequest(ctx, r)
}

// After implements [Gate].
func (g Funcs) After(ctx context.Context, r *Request, a Answer) Verdict {
	if g.OnAnswer == nil {
		return Verdict{}
	}
	return g.OnAnswer(ctx, r, a)
}

// Frame implements [Gate].
func (g Funcs) Frame(ctx context.Context, r *Request, f Frame) Verdict {
	if g.OnFrame == nil {
		return Verdict{}
	}
	return g.OnFrame(ctx, r, f)
}

// FailWith returns the verdict that answers with an API error's status.
func FailWith(err apierrors.APIStatus) Verdict {
	s := err.Status()
	return Verdict{Action: Fail, Status: &s}
}
