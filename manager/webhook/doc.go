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
// The server listens once something is registered, before the manager's caches are filled, and until work in flight has
// ended at the stop. Every replica serves, whoever leads. A replica is ready when it can serve: it listens and has a
// certificate that is valid.
//
// # Certificates
//
// The certificate is that of the files of Options.CertDir, as cert-manager puts them there. Files that change are
// loaded again; while they do not match, the last good pair is served and /readyz says why.
//
// With Options.Certificates the manager keeps the certificate itself, and the caBundle of the configurations too: see
// [Certificates]. An authority is trusted everywhere before it signs, and until it ends, so no request is refused
// during a rotation.
package webhook
