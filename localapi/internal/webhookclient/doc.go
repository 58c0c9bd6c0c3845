// Package webhookclient makes the clients with which the server calls webhooks, for admission and for the conversion of
// custom resources.
//
// A webhook is named by a URL or by a Service. Handlers in this process are called without a socket. Everything else is
// dialled with TLS: a URL as it stands, a Service at the address that the server resolves it to.
//
// Source: k8s.io/apiserver v0.37.2 pkg/util/webhook/client.go.
package webhookclient
