package rbac

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
)

// impersonate is the verb that a process needs for each part of the user on whose behalf it sends a request.
const impersonate = "impersonate"

// impersonates reports whether the call stands for a part of a user. A role names the users, because the right to
// impersonate everybody is the right to do everything.
func (c Call) impersonates() bool { return c.Verb == impersonate }

// noteImpersonation records the parts of the user on whose behalf a request with this header is made. It reports
// whether there is such a user.
//
// Source: k8s.io/apiserver v0.37.2 pkg/endpoints/filters/impersonation.
func (r *Recorder) noteImpersonation(h http.Header) bool {
	user := h.Get(authenticationv1.ImpersonateUserHeader)
	if user == "" {
		return false
	}
	account, is := strings.CutPrefix(user, "system:serviceaccount:")
	if namespace, name, _ := strings.Cut(account, ":"); is {
		r.note(Call{Resource: "serviceaccounts", Namespace: namespace, Verb: impersonate}, name)
	} else {
		r.note(Call{Resource: "users", Verb: impersonate}, user)
	}
	for _, group := range h[authenticationv1.ImpersonateGroupHeader] {
		r.note(Call{Resource: "groups", Verb: impersonate}, group)
	}
	of := Call{Group: authenticationv1.GroupName, Verb: impersonate}
	if uid := h.Get(authenticationv1.ImpersonateUIDHeader); uid != "" {
		of.Resource = "uids"
		r.note(of, uid)
	}
	of.Resource = "userextras"
	for header, values := range h {
		key, ok := strings.CutPrefix(header, authenticationv1.ImpersonateUserExtraHeaderPrefix)
		if plain, err := url.PathUnescape(strings.ToLower(key)); err == nil {
			of.Subresource = plain
		}
		for _, value := range values {
			if ok {
				r.note(of, value)
			}
		}
	}
	return true
}

// impersonations returns the rules for the impersonations among calls, with the recorded names.
func (r *Recorder) impersonations(calls []Call) (rules []rbacv1.PolicyRule) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range calls {
		if !c.impersonates() {
			continue
		}
		rule := Rules([]Call{c})[0]
		rule.ResourceNames = slices.Sorted(maps.Keys(r.calls[c]))
		rules = append(rules, rule)
	}
	return rules
}
