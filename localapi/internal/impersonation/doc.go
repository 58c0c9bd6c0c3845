// Package impersonation lets a user act as another: the headers of a request say as whom, and Roles say who may.
//
//	Impersonate-User, -Group, -Uid, -Extra-* ─▶ the user that is wanted ─▶ the first mode that allows it ─▶ the user that acts
package impersonation
