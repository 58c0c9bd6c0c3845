// Package auth says who sends a request to the embedded API: users, their groups, and how a user travels with a context.
//
// A user comes from a bearer token, from a client certificate, or, inside the process, from the client configuration that
// localapi made for that user. By impersonation a user acts as another, if Roles allow it.
package auth
