package writes

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/flyball-dev/flyball/internal/trace"
	"github.com/flyball-dev/flyball/internal/trail"
	"github.com/flyball-dev/flyball/internal/wire"
)

// Wrap returns a transport that sends requests through next and records the writes among them. It fits
// [rest.Config].Wrap.
func (r *Record) Wrap(next http.RoundTripper) http.RoundTripper {
	return &transport{record: r, next: next}
}

type transport struct {
	record *Record
	next   http.RoundTripper
}

// WrappedRoundTripper lets client-go look through wrappers.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.next }

// RoundTrip implements [http.RoundTripper].
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	to, ours := t.record.placeOf(r.URL)
	if !ours {
		return t.next.RoundTrip(r)
	}
	if reads(r.Method) || dryRun(r) {
		response, err := t.next.RoundTrip(r)
		if err == nil {
			t.record.compare(r.Context(), to, response)
		}
		return response, err
	}
	if err := context.Cause(r.Context()); err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // A transport always closes the body.
		}
		return nil, err
	}
	return t.record.send(r, to, t.next)
}

func reads(method string) bool {
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions
}

// dryRun reports whether the server stores nothing of r. Clientsets ask for the dry run of a deletion in the body.
func dryRun(r *http.Request) bool {
	return strings.Contains(r.URL.RawQuery, "dryRun") && r.URL.Query().Has("dryRun") ||
		r.Method == http.MethodDelete && wire.DryRun(r.Header.Get("Content-Type"), contentOf(r.GetBody))
}

// errPanicked is why the effect of a write is unknown if its goroutine panicked.
var errPanicked = errors.New("the writer panicked")

// send sends a write. The write is in doubt until the answer shows its effect.
func (r *Record) send(request *http.Request, to wire.Place, next http.RoundTripper) (*http.Response, error) {
	r.begun.Add(1)
	defer r.ended.Add(1)
	w := r.begin(request, to)
	note := noteOf(request, to)
	if trace.BeginWrite(request.Context(), &note) {
		note.Object.Resource = r.nameInCaches(to.Resource)
	}
	defer note.End()
	lost, answered := errPanicked, false // The reason for a doubt, unless the write ends below.
	defer func() {
		if !w.isOver() {
			note.Err = lost
			w.lose(lost, answered)
		}
	}()
	response, err := next.RoundTrip(request)
	if err != nil {
		note.Err, lost = err, err
		if !mayHaveTakenEffect(err) {
			w.resource.end(w, nil)
		}
		return nil, err
	}
	if response.StatusCode < http.StatusOK { // The connection was handed over, as after an exec.
		w.resource.end(w, nil)
		return response, nil
	}
	body, err := wire.ReadBody(response)
	_ = response.Body.Close()
	if err != nil {
		lost = err
		return nil, err
	}
	response.Body, note.Status = wire.NewBody(body), response.Status
	if refused := response.StatusCode >= http.StatusMultipleChoices; refused {
		r.compare(request.Context(), to, response)
		if lost, answered = w.failed(response, body); lost == nil {
			w.resource.end(w, w.refused(response, body))
		}
		return response, nil
	}
	a := w.read(response.Header.Get("Content-Type"), body)
	note.Version, note.Object.Name = a.ResourceVersion, cmp.Or(note.Object.Name, a.Name)
	if watched := trail.From(request.Context()); watched != nil && !w.all {
		watched.Note(asWrite(request, to, a))
	}
	if e, shown := w.effect(a, body); shown {
		w.resource.end(w, e)
	} else {
		w.endInDoubt(nil, time.Now())
	}
	return response, nil
}

// read reads the answer to a write that succeeded.
func (w *Write) read(contentType string, body []byte) wire.Answer {
	if w.intent.Decode != nil {
		if obj, err := w.intent.Decode(contentType, body); err == nil {
			return wire.AnswerOf(w.intent.Kind, obj, contentType)
		}
	}
	return wire.Identify(contentType, body)
}

// failed judges a write that was answered with an error. If the write took no effect, lost is nil; otherwise lost is
// the reason why the effect is unknown. answered reports whether the server is done with the request, so that a list
// shows all of its effect.
//
// A Status with the reason InternalError comes from code that is done. A Status without a reason may come from an error
// of the storage, which can still apply the write. A server that answers with a timeout can still apply the write, too.
//
// Source: k8s.io/apiserver v0.37.2 pkg/endpoints/handlers/responsewriters/status.go, ErrorToAPIStatus.
func (w *Write) failed(response *http.Response, body []byte) (lost error, answered bool) {
	refused := response.StatusCode < http.StatusInternalServerError || fromAdmission(body)
	// Before a deletion of many is refused for one object, it may have deleted others.
	if refused && (!w.all || response.StatusCode == http.StatusTooManyRequests) {
		return nil, true
	}
	answered = refused ||
		wire.ReasonOf(response.Header.Get("Content-Type"), body) == metav1.StatusReasonInternalError
	return fmt.Errorf("the server answered %q", response.Status), answered
}

// fromAdmission reports whether a Status comes from the admission chain, which the server calls before it stores
// anything. A webhook chooses the code of its denial, and may answer with 500.
//
// Source: k8s.io/apiserver v0.37.2 pkg/admission/plugin: webhook/errors/statuserror.go, webhook/validating and
// webhook/mutating/dispatcher.go, resourcequota/controller.go.
func fromAdmission(body []byte) bool {
	return slices.ContainsFunc([]string{
		"admission webhook ", "failed calling webhook ", "AdmissionWebhook/", "resource quota evaluation timed out",
	}, func(said string) bool { return bytes.Contains(body, []byte(said)) })
}

// mayHaveTakenEffect reports whether a request that failed with err may have been applied all the same, or may still
// be.
func mayHaveTakenEffect(err error) bool {
	if dial := (*net.OpError)(nil); errors.As(err, &dial) && dial.Op == "dial" {
		return false
	}
	untrusted := (*tls.CertificateVerificationError)(nil) // The handshake comes before the request.
	return !errors.As(err, &untrusted) && !utilnet.IsConnectionRefused(err)
}

// verbs has the verb of the Kubernetes API for each method that writes.
var verbs = map[string]string{
	http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete",
}

// nameInCaches returns the name that the caches of a resource have for it, which may be guessed. So an object has one
// timeline for its writes and for what caches and handlers did with it.
func (r *Record) nameInCaches(resource schema.GroupResource) string {
	for _, c := range r.caches().All() {
		if c.IsOf(resource) {
			return c.Resource()
		}
	}
	return resource.String()
}

// noteOf describes a request for the trace.
func noteOf(r *http.Request, to wire.Place) trace.Write {
	verb := verbs[r.Method]
	switch {
	case verb == "delete" && to.Key.Name == "":
		verb = "deletecollection"
	case verb == "patch" && strings.Contains(r.Header.Get("Content-Type"), "apply-patch"):
		verb = "apply"
	}
	object := trace.Subject{Namespace: to.Key.Namespace, Name: to.Key.Name}
	if intent, ok := r.Context().Value(intentKey).(*Intent); ok && verb == "create" {
		object.Name = cmp.Or(object.Name, intent.Name)
	}
	return trace.Write{Object: object, Verb: verb, Subresource: to.Subresource}
}

// asWrite describes an answered request for the trail, which finds the write that caused a change.
func asWrite(r *http.Request, to wire.Place, a wire.Answer) trail.Write {
	w := trail.Write{
		Verb: r.Method, Resource: to.Resource.String(), Object: cmp.Or(to.Key.Name, a.Name), Version: a.ResourceVersion,
	}
	if r.Method == http.MethodPut || r.Method == http.MethodPost {
		w.Verb = verbs[r.Method]
	}
	if to.Key.Namespace != "" {
		w.Object = to.Key.Namespace + "/" + w.Object
	}
	// Without the parameter the server takes the program's name.
	//
	// Source: k8s.io/apiserver v0.37.2 pkg/endpoints/handlers, managerOrUserAgent.
	program, _, _ := strings.Cut(r.UserAgent(), "/")
	w.Manager = cmp.Or(r.URL.Query().Get("fieldManager"), program)
	return w
}

// placeOf returns the target of a request. ours is false if the path names no object, or if the request goes to another
// server.
func (r *Record) placeOf(u *url.URL) (to wire.Place, ours bool) {
	path, below := strings.CutPrefix(u.Path, r.base.Path)
	to, isObject := wire.PlaceAt(path)
	return to, isObject && below && u.Host == r.base.Host
}
