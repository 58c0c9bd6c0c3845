// Package impersonation lets a user act as another. The headers of a request name the wanted user, and Roles decide
// whether that is allowed.
//
//	Impersonate-User, -Group, -Uid, -Extra-* ─▶ the user that is wanted ─▶ the first mode that allows it ─▶ the user that acts
package impersonation
