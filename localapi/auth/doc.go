// Package auth identifies the sender of a request to the embedded API. It defines users, their groups, and how a user
// travels in a context.
//
// A user comes from a bearer token, from a client certificate, or, inside the process, from the client configuration
// that localapi made for that user. By impersonation a user acts as another user, if Roles allow it.
package auth
