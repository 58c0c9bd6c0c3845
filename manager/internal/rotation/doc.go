// Package rotation makes and renews the certificate of webhooks. It keeps an authority and a serving certificate in a
// Secret, and the authority in the caBundle of the webhook configurations, so that API servers trust the certificate.
//
//	rotator:  configurations, Secret ─▶ plan ─▶ apply ─▶ Secret, then configurations
//	follower: Secret ─▶ CertificateStore ─▶ the TLS server
//
// Every replica runs both, whether or not it leads, because a rollout must not wait for a leader of an older version. A
// write succeeds only if the object has not changed since it was read. So if several rotators act at once, one
// succeeds, and the others read again.
//
// API servers receive a new bundle shortly after it was written, and replicas a new certificate. So a new authority is
// first added to the bundles, beside the old ones, and signs only after all bundles have had it for a while. An
// authority that was replaced stays trusted until it expires.
//
// The package relies on nothing that it reads. The Secret may be missing, damaged or changed by somebody else; the
// bundles may be empty or edited; the clock may have jumped. From every such state, plan leads to a certificate that is
// trusted. Wherever possible, no replica serves an untrusted certificate on the way. If the Secret was lost, a replica
// restores it from memory.
//
// Read secret.go and plan.go first, then target.go and rotator.go, which applies the plan. controllers.go has the
// CertificateStore and the two controllers.
package rotation
