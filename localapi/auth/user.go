package auth

import (
	"context"
	"crypto/x509"
	"slices"
)

// The names and groups that mean something to every API server.
//
// Source: k8s.io/apiserver v0.37.2 pkg/authentication/user/user.go.
const (
	Masters         = "system:masters"         // may do everything
	Authenticated   = "system:authenticated"   // all users that are known
	Unauthenticated = "system:unauthenticated" // the others
	Anonymous       = "system:anonymous"       // the user of a request without credentials

	serviceAccounts = "system:serviceaccounts"
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
		Name:   "system:serviceaccount:" + namespace + ":" + name,
		Groups: []string{serviceAccounts, serviceAccounts + ":" + namespace},
	}
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
