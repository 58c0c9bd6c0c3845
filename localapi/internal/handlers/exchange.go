package handlers

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/localapi/audit"
	"github.com/flyball-dev/flyball/localapi/gate"
	"github.com/flyball-dev/flyball/localapi/internal/codec"
	"github.com/flyball-dev/flyball/localapi/internal/watchcache"
)

// errNoSuchPath is the answer for a path that is not served. As in a kube-apiserver, it is not a Status.
var errNoSuchPath = errors.New("404 page not found")

// answer is the answer to a request: an object, or bytes.
type answer struct {
	code int

	// object is a stored object, whose encodings may be cached.
	object *watchcache.Object

	// other is an object made for this answer: a list, a table, a status.
	other runtime.Object

	// raw is an answer that is already encoded.
	raw         []byte
	contentType string

	resourceVersion string // for the gate and the audit log
	name            string // of the object created
}

func objectAnswer(code int, o *watchcache.Object) answer {
	return answer{code: code, object: o, resourceVersion: o.Meta.GetResourceVersion(), name: o.Meta.GetName()}
}

func otherAnswer(code int, obj runtime.Object) answer {
	a := answer{code: code, other: obj}
	if l, err := meta.CommonAccessor(obj); err == nil {
		a.resourceVersion = l.GetResourceVersion()
	}
	return a
}

func (x *exchange) answerError(err error) answer {
	if errors.Is(err, errNoSuchPath) {
		return answer{
			code: http.StatusNotFound, raw: []byte(err.Error() + "\n"),
			contentType: "text/plain; charset=utf-8",
		}
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		err = apierrors.NewTimeoutError("request did not complete within requested timeout - "+err.Error(), 0)
	}
	status := codec.Status(err)
	x.out.As, x.out.Format = schema.GroupVersionKind{}, codec.ErrorFormat(x.r)
	return answer{code: int(status.Code), other: status}
}

func statusError(s *metav1.Status) error {
	if s == nil {
		return apierrors.NewInternalError(errors.New("injected failure"))
	}
	return &apierrors.StatusError{ErrStatus: *s}
}

// fail answers with an error that a gate asked for.
func (x *exchange) fail(err error) {
	x.out, _ = codec.Negotiate(x.r, false, true, nil)
	a := x.answerError(err)
	x.record(a)
	x.write(a, false)
}

// finish passes the answer through the gate and sends it.
func (x *exchange) finish(a answer) {
	verdict := x.after(a)
	switch verdict.Action {
	case gate.Fail:
		x.record(a)
		x.write(x.answerError(statusError(verdict.Status)), false)
		return
	case gate.Drop:
		x.lost = true
		x.record(a)
		x.lose()
	}
	x.lost = verdict.Action == gate.Truncate
	x.record(a)
	x.write(a, x.lost)
}

// lose breaks the connection.
func (x *exchange) lose() { panic(http.ErrAbortHandler) }

// before asks the gate, which may hold the request up for as long as it likes.
func (x *exchange) before() gate.Verdict {
	if x.api.Gate == nil {
		return gate.Verdict{}
	}
	_ = http.NewResponseController(x.w).SetWriteDeadline(time.Time{}) // the listener's limit does not know of gates
	if x.info.Mutates() && x.r.Body != nil {
		// Before the body was read, net/http does not notice when a client leaves.
		if _, err := x.readBody(); err != nil {
			return gate.Verdict{} // open reports it
		}
	}
	return x.api.Gate.Before(x.r.Context(), x.info)
}

func (x *exchange) after(a answer) gate.Verdict {
	if x.api.Gate == nil {
		return gate.Verdict{}
	}
	return x.api.Gate.After(x.r.Context(), x.info, gate.Answer{
		Code: a.code, Name: x.name(a), ResourceVersion: a.resourceVersion,
	})
}

// name returns the name of the object that the request is about, as far as it is known.
func (x *exchange) name(a answer) string { return cmp.Or(x.info.Name, a.name, x.sentName) }

func (x *exchange) record(a answer) {
	if x.api.Audit == nil {
		return
	}
	name, impersonated := x.name(a), ""
	if x.impersonated {
		impersonated = x.user.Name
	}
	x.api.Audit.Record(audit.Entry{
		Time: time.Now(), Verb: x.info.Verb, Group: x.info.Group, Resource: x.info.Resource,
		Subresource: x.info.Subresource, Namespace: x.info.Namespace, Name: name, User: x.info.User,
		ImpersonatedUser: impersonated,
		UserAgent:        x.info.UserAgent,
		ContentType:      x.r.Header.Get("Content-Type"), Code: a.code, ResourceVersion: a.resourceVersion,
		Annotations: x.annotations,
		DryRun:      x.dryRun || x.query.Get("dryRun") != "", Lost: x.lost,
	})
}

// body is an encoded answer.
type body struct {
	io.Reader
	size        int64 // -1: unknown
	contentType string
}

// bodyTaker is a [http.ResponseWriter] that takes a body and has its client read it, which saves a copy of the body. No
// other method is called after TakeBody. size is the number of bytes in the body, or -1 if that is not known.
type bodyTaker interface {
	TakeBody(b io.Reader, size int64)
}

// write encodes and sends the answer. If truncate, it sends only half of it.
func (x *exchange) write(a answer, truncate bool) {
	body, err := x.encode(a)
	if err != nil {
		a = x.answerError(err)
		x.out.As.Kind = ""
		if body, err = x.encode(a); err != nil {
			x.lose()
		}
	}
	h := x.w.Header()
	h.Set("Content-Type", body.contentType)
	if body.size >= 0 {
		h.Set("Content-Length", strconv.FormatInt(body.size, 10))
	}
	h.Set("Cache-Control", "no-cache, private")
	x.warnings.header(h)
	if status, ok := a.other.(*metav1.Status); ok && status.Details != nil && status.Details.RetryAfterSeconds > 0 {
		h.Set("Retry-After", strconv.Itoa(int(status.Details.RetryAfterSeconds)))
	}
	x.w.WriteHeader(a.code)
	if truncate {
		whole, _ := io.ReadAll(body) // of a list that cannot be encoded, half of what can
		_, _ = x.w.Write(whole[:len(whole)/2])
		x.lose()
	}
	if x.r.Method == http.MethodHead {
		return
	}
	if t, ok := x.w.(bodyTaker); ok {
		t.TakeBody(body.Reader, body.size)
	} else if _, err := io.Copy(x.w, body.Reader); err != nil {
		x.lose() // the client is gone, or an item of the list cannot be encoded
	}
}

func (x *exchange) encode(a answer) (body, error) {
	b, err := x.encodeBody(a)
	if b.contentType == "" {
		b.contentType = x.out.Format.ContentType()
	}
	return b, err
}

func (x *exchange) encodeBody(a answer) (body, error) {
	if a.raw != nil {
		b := bytesBody(a.raw)
		b.contentType = a.contentType
		return b, nil
	}
	obj := a.other
	if asStored := x.out.As.Kind == "" && !x.out.Pretty; a.object != nil {
		if asStored {
			encoded, err := x.encodeStored(a.object)
			return bytesBody(encoded), err
		}
		obj = a.object.Object
	} else if list, ok := obj.(*pendingList); ok && asStored && x.out.Format != codec.YAML {
		return x.listBody(list)
	}
	obj, err := x.convert(obj)
	if err != nil {
		return body{}, err
	}
	encoded, err := x.api.Codec.Encode(obj, x.out.Format, x.out.Pretty)
	return bytesBody(encoded), err
}

func bytesBody(b []byte) body { return body{Reader: bytes.NewReader(b), size: int64(len(b))} }

// encodeStored encodes a stored object, once for all clients.
func (x *exchange) encodeStored(o *watchcache.Object) ([]byte, error) {
	switch x.out.Format {
	case codec.JSON:
		return o.Encoded(watchcache.JSON, x.encodeObject)
	case codec.Protobuf:
		return o.Encoded(watchcache.Protobuf, func(obj runtime.Object) ([]byte, error) {
			envelope := codec.NewEnvelope(x.res.Definition.GroupVersionKind())
			if m, ok := envelope.Stamp(o.Value, o.Revision); ok {
				return envelope.Seal(&m), nil
			}
			return x.encodeObject(obj)
		})
	}
	return x.encodeObject(o.Object)
}

// encodeObject encodes an object in the format of the answer.
func (x *exchange) encodeObject(obj runtime.Object) ([]byte, error) {
	return x.api.Codec.Encode(obj, x.out.Format, false)
}

// recorder records the status code of an answer that another handler writes.
type recorder struct {
	http.ResponseWriter
	code int
}

func (r *recorder) WriteHeader(code int) {
	r.code = code
	r.ResponseWriter.WriteHeader(code)
}

// serveOther answers a path outside resources.
func (x *exchange) serveOther(h http.Handler) {
	rec := &recorder{ResponseWriter: x.w, code: http.StatusOK}
	switch v := x.after(answer{code: rec.code}); v.Action {
	case gate.Drop:
		x.lose()
	case gate.Fail:
		x.fail(statusError(v.Status))
		return
	}
	x.w.Header().Set("Cache-Control", "no-cache, private")
	h.ServeHTTP(rec, x.r)
	x.record(answer{code: rec.code})
}

func isExpired(err error) bool { return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) }
