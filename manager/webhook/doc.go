// Package webhook serves the webhooks of a program: admission webhooks, which default and validate objects before they
// are stored, and conversion webhooks, which convert custom resources between versions. An API server calls them over
// TLS.
//
// A program seldom uses this package directly. It builds webhooks with ctrl.NewWebhookManagedBy, which registers them
// with the server of the manager; Options.Webhook of the manager configures that server. Package admission has the
// interfaces that a webhook implements, package conversion those of a type with several versions.
//
// # Serving
//
// The server listens as soon as a webhook is registered, before the manager's caches are filled. When the manager
// stops, the server serves until all work in flight has ended. Every replica serves, whether or not it leads. A replica
// is ready when it can serve: it listens and has a valid certificate.
//
// # Certificates
//
// By default the certificate is read from files in Options.CertDir, where cert-manager puts them. The server loads the
// files again when they change. While certificate and key do not match, it serves the last good pair, and /readyz shows
// the reason.
//
// With Options.Certificates the manager makes the certificate itself, and writes the caBundle of the configurations:
// see [Certificates]. An authority is trusted everywhere from before it signs until it expires, so no request fails
// during a rotation.
package webhook
