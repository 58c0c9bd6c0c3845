package auth

import (
	"context"
	"crypto/x509"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validation"
)

// Names and groups that every API server treats specially.
//
// Source: k8s.io/apiserver v0.37.2 pkg/authentication/user/user.go.
const (
	Masters         = "system:masters"         // may do everything
	Authenticated   = "system:authenticated"   // all users that the server knows
	Unauthenticated = "system:unauthenticated" // all others
	Anonymous       = "system:anonymous"       // the user of a request without credentials

	serviceAccounts      = "system:serviceaccounts"
	serviceAccountPrefix = "system:serviceaccount:"
)

// User is the sender of a request.
type User struct {
	Name   string
	UID    string
	Groups []string
	Extra  map[string][]string
}

// Admin returns a user that may do everything. Clients inside the process that name no user act as Admin.
func Admin() User { return User{Name: "system:admin", Groups: []string{Masters}} }

// Nobody returns the user of a request without credentials.
func Nobody() User { return User{Name: Anonymous, Groups: []string{Unauthenticated}} }

// ServiceAccount returns the user that the pods of a service account act as.
func ServiceAccount(namespace, name string) User {
	return User{
		Name:   serviceAccountPrefix + namespace + ":" + name,
		Groups: []string{serviceAccounts, serviceAccounts + ":" + namespace},
	}
}

// SplitServiceAccount returns the service account whose user has this name. ok is false if the name is not that of a
// service account's user.
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

// FromCertificate returns the user that a client certificate names: the common name is the user, and each organization
// is a group.
func FromCertificate(c *x509.Certificate) User {
	return User{Name: c.Subject.CommonName, Groups: slices.Clone(c.Subject.Organization)}
}

// Known returns u as a user known to the server, which adds the group [Authenticated]. It returns Nobody unchanged.
func (u User) Known() User {
	if u.Name == Anonymous || slices.Contains(u.Groups, Authenticated) {
		return u
	}
	u.Groups = append(slices.Clone(u.Groups), Authenticated)
	return u
}

// Grouped completes the groups of u when a client chose them: it adds [Unauthenticated] if u is Anonymous, and
// [Authenticated] otherwise. It leaves u alone if u is in Unauthenticated already.
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

// WithUser returns a context for requests sent by u. The context keeps u, which must not change after that.
func WithUser(ctx context.Context, u *User) context.Context {
	return context.WithValue(ctx, userKey{}, u)
}

// UserFrom returns the user that [WithUser] put into ctx.
func UserFrom(ctx context.Context) (User, bool) {
	if u, ok := ctx.Value(userKey{}).(*User); ok {
		return *u, true
	}
	return User{}, false
}
