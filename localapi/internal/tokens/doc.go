// Package tokens issues bearer tokens for service accounts, and verifies them.
//
// A token is a JSON web token with the claims of a kube-apiserver's. It is signed with a key that the server generates
// when it starts. No other server accepts it, nor does the same server after a restart.
package tokens
