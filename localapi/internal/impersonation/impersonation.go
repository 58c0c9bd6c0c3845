package impersonation

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/flyball-dev/flyball/localapi/auth"
	"github.com/flyball-dev/flyball/localapi/internal/rbac"
)

// Impersonate returns the user that u acts as in a request with this header. ok is false if the header asks for no
// impersonation. a is what the request asks for, because the permission to impersonate may be limited to that.
//
// Errors: BadRequest; Forbidden, with what was missing in the first of the modes that are for such a user.
//
// Source: k8s.io/apiserver v0.37.2 pkg/endpoints/filters/impersonation (feature ConstrainedImpersonation, on since
// 1.36).
func Impersonate(z *rbac.Authorizer, u auth.User, h http.Header, a rbac.Attributes) (as auth.User, ok bool, err error) {
	wanted, ok, err := wantedUser(h)
	if err != nil || !ok {
		return auth.User{}, false, err
	}
	var first error
	for i := range modes {
		if !modes[i].isFor(u, wanted) {
			continue
		}
		c := check{authorizer: z, mode: &modes[i], requestor: u}
		as, err := c.allows(wanted, a)
		if err == nil {
			return as, true, nil
		}
		if first == nil {
			first = err
		}
	}
	return auth.User{}, false, first
}

// wantedUser reads the headers. Their names may not be in canonical form, because requests inside the process do not
// pass a parser.
func wantedUser(h http.Header) (u auth.User, ok bool, err error) {
	const prefix = "Impersonate-"
	var names []string
	for name := range h {
		if len(name) > len(prefix) && strings.EqualFold(name[:len(prefix)], prefix) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	asked := false
	for _, name := range names {
		values := h[name]
		switch key := http.CanonicalHeaderKey(name); {
		case key == authenticationv1.ImpersonateUserHeader && u.Name == "" && len(values) > 0:
			u.Name = values[0]
		case key == authenticationv1.ImpersonateUIDHeader && u.UID == "" && len(values) > 0:
			u.UID = values[0]
			asked = asked || u.UID != ""
		case key == authenticationv1.ImpersonateGroupHeader:
			u.Groups = append(u.Groups, values...)
			asked = asked || len(values) > 0
		case strings.HasPrefix(key, authenticationv1.ImpersonateUserExtraHeaderPrefix):
			asked = true
			u.Extra = withExtra(u.Extra, key[len(authenticationv1.ImpersonateUserExtraHeaderPrefix):], values)
		}
	}
	if u.Name == "" && asked {
		return u, false, apierrors.NewBadRequest(fmt.Sprintf(
			"requested &user.DefaultInfo{Name:%#v, UID:%#v, Groups:%#v, Extra:%#v} without impersonating a user name",
			u.Name, u.UID, u.Groups, u.Extra))
	}
	return u, u.Name != "", nil
}

// withExtra adds values under a key as it appears in the name of a header: in any case, and escaped.
func withExtra(extra map[string][]string, key string, values []string) map[string][]string {
	if len(values) == 0 {
		return extra
	}
	key = strings.ToLower(key)
	if plain, err := url.PathUnescape(key); err == nil {
		key = plain
	}
	if extra == nil {
		extra = map[string][]string{}
	}
	extra[key] = append(extra[key], values...)
	return extra
}
