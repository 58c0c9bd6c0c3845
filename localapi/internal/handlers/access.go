package handlers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/localapi/auth"
	"github.com/flyball-dev/flyball/localapi/internal/impersonation"
	"github.com/flyball-dev/flyball/localapi/internal/rbac"
	"github.com/flyball-dev/flyball/localapi/internal/resource"
)

// Access controls who may send requests, and how many at once. The zero value lets every client do everything.
type Access struct {
	// Tokens maps bearer tokens to users. If there are any, an unknown token is rejected.
	Tokens map[string]auth.User

	// Issued returns the user of a token that the server itself has issued. ok is false for any other token. Errors:
	// the reason why a token of this server is invalid.
	Issued func(token string) (u auth.User, ok bool, err error)

	// Authorizer decides what a user may do; nil allows everything.
	Authorizer *rbac.Authorizer

	// Reads and Writes bound the requests answered at once; 0 is no bound. Watches do not count.
	Reads, Writes int

	reads, writes atomic.Int64
}

// authenticate returns the sender of a request. If no roles decide what a user without credentials may do, that user
// may read what is public.
//
// Errors: Unauthorized.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/kubeapiserver/options/authentication.go ApplyAuthorization, which knows no
// anonymous user when everything is allowed.
func (a *Access) authenticate(r *http.Request) (auth.User, error) {
	u, err := a.identify(r)
	if err == nil && u.Name == auth.Anonymous && a.Authorizer == nil &&
		(r.Method != http.MethodGet || !slices.Contains(PublicPaths(), r.URL.Path)) {
		err = apierrors.NewUnauthorized("Unauthorized")
	}
	return u, err
}

// PublicPaths returns the paths that every client may read.
//
// Source: k8s.io/kubernetes v1.37.2 plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go
// system:public-info-viewer.
func PublicPaths() []string {
	return []string{"/healthz", "/livez", "/readyz", "/version", "/version/"}
}

// identify returns the sender of a request. A client of this process, or a listener that knows its users, puts the user
// into the request's context.
func (a *Access) identify(r *http.Request) (auth.User, error) {
	if header := r.Header.Get("Authorization"); header != "" {
		if u, ok, err := a.bearer(header); ok || err != nil {
			return u, err
		}
	}
	if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		return auth.FromCertificate(r.TLS.VerifiedChains[0][0]).Known(), nil
	}
	if u, ok := auth.UserFrom(r.Context()); ok {
		return u.Known(), nil
	}
	if len(a.Tokens) > 0 {
		return auth.Nobody(), nil
	}
	return auth.Admin().Known(), nil
}

// bearer returns the user of an Authorization header. ok is false if the header has no meaning for this server. Errors:
// Unauthorized.
func (a *Access) bearer(header string) (u auth.User, ok bool, err error) {
	refused := apierrors.NewUnauthorized("Unauthorized")
	scheme, token, _ := strings.Cut(header, " ")
	token = strings.TrimSpace(token)
	if strings.EqualFold(scheme, "bearer") {
		if u, ok := a.Tokens[token]; ok {
			return u.Known(), true, nil
		}
		if u, ok, err := a.Issued(token); err != nil {
			return u, false, refused
		} else if ok {
			return u.Known(), true, nil
		}
	}
	if len(a.Tokens) > 0 {
		return u, false, refused
	}
	return u, false, nil
}

// admit rejects a request while too many others are being answered. If ok, the caller must call leave when the request
// is answered.
//
// Source: k8s.io/apiserver v0.37.2 pkg/server/filters/maxinflight.go.
func (a *Access) admit(x *exchange) (leave func(), ok bool) {
	limit, running := a.Reads, &a.reads
	if x.info.Mutates() {
		limit, running = a.Writes, &a.writes
	}
	if limit <= 0 || x.info.Verb == "watch" {
		return func() {}, true
	}
	leave = func() { running.Add(-1) }
	if running.Add(1) > int64(limit) {
		leave()
		return nil, false
	}
	return leave, true
}

// tooMany tells a client to retry later.
func (x *exchange) tooMany() {
	x.w.Header().Set("Retry-After", "1")
	http.Error(x.w, "Too many requests, please try again later.", http.StatusTooManyRequests)
	x.record(answer{code: http.StatusTooManyRequests})
}

// impersonate switches to the user that the request's headers ask for. Errors: Forbidden, BadRequest.
func (x *exchange) impersonate() error {
	a := x.target.attributes(x.info.Path)
	user, ok, err := impersonation.Impersonate(x.api.Access.Authorizer, x.user, x.r.Header, a)
	if err != nil || !ok {
		return err
	}
	x.user, x.impersonated = user, true
	return nil
}

// authorize rejects what the user may not do. Errors: Forbidden.
func (x *exchange) authorize() error {
	return x.api.Access.Authorizer.Check(x.user, x.target.attributes(x.info.Path))
}

// alsoMay rejects what the user may not do with a further verb. says begins the reason. Errors: Forbidden.
func (x *exchange) alsoMay(verb, says string) error {
	a := x.target.attributes(x.info.Path)
	a.Verb = verb
	allowed, reason := x.api.Access.Authorizer.Authorize(x.user, a)
	if allowed {
		return nil
	}
	return apierrors.NewForbidden(x.res.Definition.GroupResource(), a.Name, errors.New(says+reason))
}

// mayGrant rejects a role or binding that would grant more than the user has. Errors: Forbidden, and failures to find
// out.
func (x *exchange) mayGrant(obj, old runtime.Object) error {
	return x.api.Access.Authorizer.CheckGrant(x.user, x.target.attributes(x.info.Path), obj, old)
}

// permitted makes the checks that need the object. An update or apply that creates an object was authorized only as an
// update or apply, so the creation is checked here. So is the permission to sign a certificate for its signer. Errors:
// Forbidden.
//
// Source: k8s.io/apiserver v0.37.2 pkg/endpoints/handlers/update.go withAuthorization.
func (x *exchange) permitted(obj, old runtime.Object) error {
	a := x.target.attributes(x.info.Path)
	if old == nil && a.Verb != "create" {
		a.Verb = "create"
		if err := x.api.Access.Authorizer.Check(x.user, a); err != nil {
			return err
		}
	}
	return x.api.Access.Authorizer.CheckSigning(x.user, a, obj, old)
}

// mayDeleteUnsafely rejects the deletion of unreadable objects unless the user has the verb that it needs. Errors:
// Forbidden.
//
// Source: k8s.io/apiserver v0.37.2 pkg/endpoints/handlers/delete.go authorizeUnsafeDelete.
func (x *exchange) mayDeleteUnsafely() error {
	const verb = "unsafe-delete-ignore-read-errors"
	return x.alsoMay(verb, fmt.Sprintf("not permitted to do %q, reason: ", verb))
}

func (x *exchange) review(ctx context.Context) (answer, error) {
	d := x.res.Definition
	obj, err := x.decode(d.GroupVersionKind(), x.res.New())
	if err != nil {
		return answer{}, err
	}
	if d.Namespaced {
		resource.Meta(obj).SetNamespace(x.info.Namespace)
	}
	reviewed, err := d.Review(ctx, obj)
	if err != nil {
		return answer{}, err
	}
	return answer{code: http.StatusCreated, other: reviewed}, nil
}
