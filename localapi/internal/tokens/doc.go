// Package tokens issues bearer tokens for service accounts, and knows them again.
//
// A token is a JSON web token with the claims of a kube-apiserver's. It is signed with a key that the server makes when
// it starts: no other server accepts it, nor does this one after a restart.
package tokens
