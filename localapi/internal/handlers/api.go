package handlers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"runtime/debug"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/internal/bodies"
	"github.com/flyball-dev/flyball/localapi/audit"
	"github.com/flyball-dev/flyball/localapi/auth"
	"github.com/flyball-dev/flyball/localapi/gate"
	"github.com/flyball-dev/flyball/localapi/internal/admission"
	"github.com/flyball-dev/flyball/localapi/internal/codec"
	"github.com/flyball-dev/flyball/localapi/internal/registry"
)

// maxBody bounds a request's body, as in a kube-apiserver.
const maxBody = 3 << 20

// API serves resources.
type API struct {
	Codec *codec.Codec
	Gate  gate.Gate // nil: everything passes
	Audit *audit.Log

	// Bodies bounds the bodies of all requests under way.
	Bodies *bodies.Budget

	// Resource returns the resource of a path, or nil if there is none.
	Resource func(schema.GroupVersionResource) *registry.Resource

	// Group reports whether a group has built-in types. For other types of such a group, the answer is a Status.
	Group func(string) bool

	// Other serves the paths outside resources: discovery, OpenAPI, health.
	Other http.Handler

	// Access decides what users may do.
	Access Access

	// Admission changes and checks writes.
	Admission admission.Chain

	// Managers maintains managed fields.
	Managers *registry.Managers

	// BookmarkInterval is how often a watch that allows bookmarks gets one, if anything happened.
	BookmarkInterval time.Duration

	// Stopping is closed when the server closes. Watches then end.
	Stopping <-chan struct{}
}

// ServeHTTP answers a request.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := url.Values(nil)
	if r.URL.RawQuery != "" {
		query = r.URL.Query()
	}
	info, target, err := parseRequest(r, query)
	x := &exchange{api: a, w: w, r: r, query: query, info: info, target: target}
	defer x.recoverPanic()
	defer func() {
		if x.releaseBody != nil {
			x.releaseBody()
		}
	}()
	if err != nil {
		x.unreadable(err)
		return
	}
	user, refused := a.Access.authenticate(r)
	x.user, info.User = user, user.Name
	leave, ok := a.Access.admit(x)
	if !ok {
		x.tooMany()
		return
	}
	defer leave()
	if refused == nil {
		refused = x.impersonate()
	}
	if refused == nil {
		refused = x.authorize()
	}
	if refused != nil { // before a gate holds the request, and its body
		x.fail(refused)
		return
	}
	verdict := x.before()
	switch verdict.Action {
	case gate.Drop:
		x.lose()
	case gate.Fail:
		x.fail(statusError(verdict.Status))
		return
	}
	x.serve(verdict)
}

// serve performs what the user may do.
func (x *exchange) serve(verdict gate.Verdict) {
	if !x.target.IsResource {
		x.serveOther(x.api.Other)
		return
	}
	err := x.open()
	if err == nil {
		err = x.routed()
	}
	if err != nil {
		x.finish(x.answerError(err))
		return
	}
	x.asOf = verdict.AsOf
	if x.info.Verb == "watch" {
		x.serveWatch()
		return
	}
	answer := x.answer()
	if verdict.Action == gate.Repeat {
		answer = x.answer()
	}
	x.finish(answer)
}

// AnswersAtOnce reports whether a request is known to get one whole answer, without a gate that delays it: it is not a
// watch. It may still wait for webhooks, or for a version that it names, until its context ends. When in doubt
// AnswersAtOnce returns false.
func (a *API) AnswersAtOnce(r *http.Request) bool {
	return a.Gate == nil && !strings.Contains(r.URL.Path, "/watch") && !strings.ContainsAny(r.URL.RawQuery, "%") &&
		!strings.Contains(r.URL.RawQuery, "watch")
}

// recoverPanic answers a request whose handling panicked, as a kube-apiserver does. It lets a panic that breaks the
// connection on purpose pass.
func (x *exchange) recoverPanic() {
	p := recover()
	if p == nil {
		return
	}
	if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(p)
	}
	klog.FromContext(x.r.Context()).Error(nil, "Request caused a panic", "path", x.r.URL.Path, "panic", p,
		"stack", string(debug.Stack()))
	http.Error(x.w, fmt.Sprintf("This request caused apiserver to panic: %v", p), http.StatusInternalServerError)
}

// exchange is one request being answered.
type exchange struct {
	api   *API
	w     http.ResponseWriter
	r     *http.Request
	query url.Values
	info  *gate.Request

	// target is what is authorized. info is the same request as gates see it.
	target target

	// user is the acting user: info.User, or the user that it impersonates.
	user         auth.User
	impersonated bool

	res  *registry.Resource
	out  codec.Output
	asOf int64

	// body and bodyErr are what readBody returned; both are nil before.
	body        []byte
	bodyErr     error
	releaseBody func() // makes room for the bodies of others; nil before readBody

	sentName string // name of the object in a create's body
	dryRun   bool   // requested in a delete's body
	warnings warnings
	lost     bool

	annotations map[string]string // for the audit log

	admitted *admission.Review // nil if no plugin has anything to do
}

// open finds the resource, negotiates the answer's encoding and reads the body.
func (x *exchange) open() error {
	i := x.info
	x.res = x.api.Resource(schema.GroupVersionResource{Group: i.Group, Version: i.Version, Resource: i.Resource})
	if x.res == nil || i.Namespace != "" && !x.res.Definition.Namespaced {
		// A cluster-scoped type must not be reached through a namespace, because a Role there must not grant access to
		// it.
		return x.notServed()
	}
	if d := x.res.Definition.Deprecation; d != "" {
		x.warn(d)
	}
	collection := !x.target.Named && (i.Verb == "list" || i.Verb == "watch")
	if representations, ok := codec.Representable(x.r, collection); !ok {
		return serviceError(http.StatusNotAcceptable, "\n\nAvailable representations: "+representations)
	}
	out, err := codec.Negotiate(x.r, i.Verb == "watch", x.res.Protobuf, x.convertible)
	if err != nil {
		return err
	}
	x.out = out
	if !i.Mutates() || x.r.Body == nil {
		return nil
	}
	body, err := x.readBody()
	if apierrors.IsTooManyRequests(err) {
		return err
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return serviceError(http.StatusRequestTimeout, ": the body did not arrive in time")
	}
	if err != nil {
		return apierrors.NewBadRequest("read request body: " + err.Error())
	}
	if len(body) > maxBody {
		return apierrors.NewRequestEntityTooLargeError("limit is 3145728")
	}
	if format, err := codec.InputFormat(x.r); err == nil && format == codec.YAML || i.Verb == "patch" {
		return codec.CheckAliases(body, maxBody)
	}
	return nil
}

// readBody reads the body at the first call, and returns it at each.
//
// Errors: TooManyRequests while the bodies of other requests fill the room for all.
func (x *exchange) readBody() ([]byte, error) {
	if x.body != nil || x.bodyErr != nil {
		return x.body, x.bodyErr
	}
	x.body, x.releaseBody, x.bodyErr = x.api.Bodies.Read(x.r.Body, maxBody)
	if errors.Is(x.bodyErr, bodies.ErrFull) {
		x.bodyErr = apierrors.NewTooManyRequests(x.bodyErr.Error()+": try again later", 1)
	}
	return x.body, x.bodyErr
}

// answer performs the operation.
func (x *exchange) answer() answer {
	ctx := auth.WithUser(x.r.Context(), &x.user)
	if x.info.Mutates() && !x.api.Admission.Idle(x.res.Definition.GroupResource()) {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, x.timeLimit())
		defer cancel()
	}
	a, err := x.perform(ctx)
	switch {
	case err == nil:
		return a
	case errors.Is(ctx.Err(), context.DeadlineExceeded) && x.query.Get("timeout") != "" && x.r.Context().Err() == nil:
		return outOfTime()
	}
	return x.answerError(err)
}

// perform performs the operation, and tells the admission when it is over.
func (x *exchange) perform(ctx context.Context) (a answer, err error) {
	err = errUnfinished
	defer func() {
		if x.admitted != nil {
			x.admitted.Settle(context.WithoutCancel(ctx), err == nil)
		}
	}()
	if x.info.Subresource != "" {
		a, err = x.subresource(ctx)
	} else {
		a, err = x.operation(ctx)
	}
	return a, err
}

// errUnfinished is the error of an operation that panics.
var errUnfinished = errors.New("the operation was not finished")

// outOfTime is the answer to a write that took longer than the client gave it.
//
// Source: k8s.io/apiserver v0.37.2 pkg/server/filters/timeout.go.
func outOfTime() answer {
	const body = `{"metadata":{},"status":"Failure","message":"Timeout: request did not complete within the allotted ` +
		`timeout","reason":"Timeout","details":{},"code":504}` + "\n"
	return answer{code: http.StatusGatewayTimeout, raw: []byte(body), contentType: "text/plain; charset=utf-8"}
}

func (x *exchange) operation(ctx context.Context) (answer, error) {
	d, named := x.res.Definition, x.target.Named
	switch {
	case x.unrouted():
		return answer{}, serviceError(http.StatusNotFound)
	case x.everywhere() && x.info.Verb != "list": // across all namespaces objects can only be read
		return answer{}, x.notAllowed()
	case x.info.Verb == "deletecollection" && d.NoDeleteCollection, d.CreateOnly() && x.info.Verb != "create":
		return answer{}, x.notAllowed()
	case d.Review != nil:
		return x.review(ctx)
	case d.Creates != "":
		return x.createNamed(ctx)
	}
	switch x.info.Verb {
	case "get":
		return x.get(ctx)
	case "list":
		return x.list(ctx)
	case "create":
		if !named {
			return x.create(ctx)
		}
	case "update":
		if named {
			return x.update(ctx, registry.Main)
		}
	case "patch":
		if named {
			return x.patch(ctx, registry.Main)
		}
	case "delete":
		return x.delete(ctx)
	case "deletecollection":
		return x.deleteCollection(ctx)
	}
	return answer{}, x.notAllowed()
}

// everywhere reports whether the path is that of all namespaces.
func (x *exchange) everywhere() bool { return x.res.Definition.Namespaced && x.info.Namespace == "" }

// unrouted reports whether the path has no route, whatever the method. What can only be created has no path of an
// object, and none of all namespaces.
func (x *exchange) unrouted() bool {
	if x.res.Definition.CreateOnly() {
		return x.everywhere() || x.target.Named
	}
	return x.everywhere() && x.target.Named
}

// routed rejects requests by HEAD, watches, and other requests with their verb in the path, that have no route.
func (x *exchange) routed() error {
	switch d := x.res.Definition; {
	case x.r.Method == http.MethodHead && !x.res.Unstructured && x.info.Subresource != "proxy":
		return x.notAllowed()
	case x.info.Verb == "proxy":
		return x.notServed()
	case x.info.Verb != "watch":
		return nil
	case x.info.Subresource != "", x.unrouted():
		return x.notServed()
	case x.r.Method != http.MethodGet && x.r.Method != http.MethodHead, d.CreateOnly():
		return x.notAllowed()
	}
	return nil
}

// notServed returns the error for a resource that does not exist, in a group that does or does not exist.
func (x *exchange) notServed() error {
	if x.api.Group(x.info.Group) {
		return serviceError(http.StatusNotFound)
	}
	return errNoSuchPath
}

// notAllowed returns the error for a method that a path does not have.
func (x *exchange) notAllowed() error { return serviceError(http.StatusMethodNotAllowed) }

// serviceError returns an error of the real server's router.
//
// Source: k8s.io/apiserver pkg/server/handler.go serviceErrorHandler, github.com/emicklei/go-restful jsr311.go.
func serviceError(code int, more ...string) error {
	message := fmt.Sprintf("%d: %s%s", code, http.StatusText(code), strings.Join(more, ""))
	return apierrors.NewGenericServerResponse(code, "", schema.GroupResource{}, "", message, 0, false)
}
