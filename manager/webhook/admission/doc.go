// Package admission answers the requests that an API server sends to mutating and validating webhooks.
//
// A webhook for one Go type implements [Defaulter] or [Validator]; [WithDefaulter] and [WithValidator] make handlers of
// them. A webhook for anything else implements [Handler]. A [Webhook] serves a Handler over HTTP:
//
//	AdmissionReview ─▶ Webhook ─Request─▶ Handler (decode ─▶ Defaulter or Validator) ─Response─▶ AdmissionReview
//
// Most programs need neither: ctrl.NewWebhookManagedBy makes all this, and registers it with the manager's server.
//
// # Promises
//
//   - The answer to any request is valid: an AdmissionReview of the version of the request, or status 400, 405, 413 or
//     415 with a metav1.Status that describes the problem, which the API server shows to its user.
//   - A panic of a handler is answered, logged with its stack, and counted.
//   - The context ends when the API server stops waiting: its timeout is in the request. It carries the request
//     ([RequestFromContext]) and a logger.
//   - Fields that the Go type does not have survive a [Defaulter]: see [WithDefaulter].
//
// Read response.go first, which has the request, too, then handler.go and validator.go. http.go is the protocol;
// patch.go computes patches.
package admission
