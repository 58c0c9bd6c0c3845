package auth

import (
	"context"
	"crypto/x509"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validation"
)

// The names and groups that mean something to every API server.
//
// Source: k8s.io/apiserver v0.37.2 pkg/authentication/user/user.go.
const (
	Masters         = "system:masters"         // may do everything
	Authenticated   = "system:authenticated"   // all users that are known
	Unauthenticated = "system:unauthenticated" // the others
	Anonymous       = "system:anonymous"       // the user of a request without credentials

	serviceAccounts      = "system:serviceaccounts"
	serviceAccountPrefix = "system:serviceaccount:"
)

// User is who sends a request.
type User struct {
	Name   string
	UID    string
	Groups []string
	Extra  map[string][]string
}

// Admin is a user who may do everything. Clients inside the process that name no user are it.
func Admin() User { return User{Name: "system:admin", Groups: []string{Masters}} }

// Nobody is the user of a request without credentials.
func Nobody() User { return User{Name: Anonymous, Groups: []string{Unauthenticated}} }

// ServiceAccount is the user as whom the pods of a service account come.
func ServiceAccount(namespace, name string) User {
	return User{
		Name:   serviceAccountPrefix + namespace + ":" + name,
		Groups: []string{serviceAccounts, serviceAccounts + ":" + namespace},
	}
}

// SplitServiceAccount returns the service account whose user has this name; ok is false if none can.
//
// Source: k8s.io/apiserver v0.37.2 pkg/authentication/serviceaccount/util.go SplitUsername.
func SplitServiceAccount(user string) (namespace, name string, ok bool) {
	account, ok := strings.CutPrefix(user, serviceAccountPrefix)
	if !ok {
		return "", "", false
	}
	namespace, name, _ = strings.Cut(account, ":")
	valid := len(validation.ValidateNamespaceName(namespace, false)) == 0 &&
		len(validation.ValidateServiceAccountName(name, false)) == 0
	if !valid {
		return "", "", false
	}
	return namespace, name, true
}

// FromCertificate is the user that a client certificate names: its common name, in the groups that are its organisations.
func FromCertificate(c *x509.Certificate) User {
	return User{Name: c.Subject.CommonName, Groups: slices.Clone(c.Subject.Organization)}
}

// Known is u as the server knows it: with the group of all who are known, unless it is Nobody.
func (u User) Known() User {
	if u.Name == Anonymous || slices.Contains(u.Groups, Authenticated) {
		return u
	}
	u.Groups = append(slices.Clone(u.Groups), Authenticated)
	return u
}

// Grouped is u, whose groups somebody chose, with the one of the two that everyone is in: all who are known, unless u
// is Anonymous, or was put into the group of the others.
func (u User) Grouped() User {
	group := Authenticated
	switch {
	case u.Name == Anonymous:
		group = Unauthenticated
	case slices.Contains(u.Groups, Unauthenticated):
		return u
	}
	if !slices.Contains(u.Groups, group) {
		u.Groups = append(slices.Clone(u.Groups), group)
	}
	return u
}

type userKey struct{}

// WithUser returns a context of requests that u sends.
// It keeps u, which must not change any more.
func WithUser(ctx context.Context, u *User) context.Context {
	return context.WithValue(ctx, userKey{}, u)
}

// UserFrom returns the user of [WithUser].
func UserFrom(ctx context.Context) (User, bool) {
	if u, ok := ctx.Value(userKey{}).(*User); ok {
		return *u, true
	}
	return User{}, false
}
