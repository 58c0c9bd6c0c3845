// Package rotation keeps the certificate of webhooks: an authority and a serving certificate in a Secret, and the
// authority in the caBundle of the configurations that make API servers call.
//
//	rotator:  configurations, Secret ─▶ plan ─▶ apply ─▶ Secret, then configurations
//	follower: Secret ─▶ Keeper ─▶ the TLS server
//
// Every replica runs both, whoever leads: a rollout must not wait for a leader of an older version. A write succeeds
// only if nobody changed what was read, so of several rotators one is first, and the others look again.
//
// API servers learn of a new bundle a little after it was written, and replicas of a new certificate a little after
// that. So a new authority is first put into the bundles, beside those that are there. It signs once all bundles have
// had it for a while. An authority that was replaced stays trusted until it ends.
//
// Nothing that is read is taken for granted: not the Secret, which may be gone, garbled or another's; not the bundles,
// which may be empty or edited; not the clock, which may have jumped. Whatever is found, plan leads from there to a
// certificate that is trusted, if possible without a moment in which a replica serves one that is not. If the Secret
// was lost, a replica restores it from memory.
//
// Read secret.go and plan.go first, then target.go and rotator.go, which applies. controllers.go has the
// Keeper, and runs both.
package rotation
