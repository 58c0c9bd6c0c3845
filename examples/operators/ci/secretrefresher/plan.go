package secretrefresher

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	// lifetime is the age at which references to a secret are dropped. At twice that age the secret is deleted.
	lifetime = 30 * 24 * time.Hour

	// deleteAfter is the annotation with the time at which a secret is too old. The misspelling is part of the name.
	deleteAfter = "serviaccount-secret-rotator.openshift.io/delete-after"
)

// plan is what must be done about a service account.
type plan struct {
	// pull and secrets are the references to keep. changed means that others are dropped.
	pull    []corev1.LocalObjectReference
	secrets []corev1.ObjectReference
	changed bool
	// remove holds the secrets that are old enough to be deleted.
	remove []*corev1.Secret
	// next is when there is something to do again. Zero means never.
	next time.Time
}

// isToken reports whether a secret holds a token, which a user requested and nothing renews.
func isToken(s *corev1.Secret) bool { return s.Type == corev1.SecretTypeServiceAccountToken }

// expiry returns when a secret is too old to be referred to.
func expiry(s *corev1.Secret) time.Time {
	end := s.CreationTimestamp.Add(lifetime)
	if at, ok := annotatedEnd(s); ok && at.Before(end) {
		return at
	}
	return end
}

func annotatedEnd(s *corev1.Secret) (time.Time, bool) {
	at, err := time.Parse(time.RFC3339, s.Annotations[deleteAfter])
	return at, err == nil
}

// removal returns when a secret is old enough to be deleted.
func removal(s *corev1.Secret) time.Time {
	end := s.CreationTimestamp.Add(2 * lifetime)
	if at, ok := annotatedEnd(s); ok && at.Before(end) {
		return at
	}
	return end
}

// planFor decides what to do at now. all holds the secrets of the namespace, by name.
func planFor(sa *corev1.ServiceAccount, all map[string]*corev1.Secret, removeOld bool, now time.Time) (p plan) {
	soon := func(t time.Time) {
		if p.next.IsZero() || t.Before(p.next) {
			p.next = t
		}
	}
	keep := func(name string, tokens bool) bool {
		s := all[name]
		switch {
		case s == nil: // the secret does not exist
			return false
		case tokens && isToken(s):
			return true
		case !now.Before(expiry(s)):
			return false
		}
		soon(expiry(s))
		return true
	}
	for _, ref := range sa.ImagePullSecrets {
		if keep(ref.Name, false) {
			p.pull = append(p.pull, ref)
		}
	}
	for _, ref := range sa.Secrets {
		if keep(ref.Name, true) {
			p.secrets = append(p.secrets, ref)
		}
	}
	p.changed = len(p.pull) != len(sa.ImagePullSecrets) || len(p.secrets) != len(sa.Secrets)
	if !removeOld || p.waits() { // the existing secrets may be the only ones that work
		return p
	}
	for _, s := range all {
		if s.Annotations[corev1.ServiceAccountUIDKey] != string(sa.UID) || isToken(s) || p.refersTo(s.Name) {
			continue
		}
		if at := removal(s); now.Before(at) {
			soon(at)
		} else {
			p.remove = append(p.remove, s)
		}
	}
	slices.SortFunc(p.remove,
		func(a, b *corev1.Secret) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	return p
}

// waits reports whether the service account is waiting for new secrets.
func (p *plan) waits() bool { return len(p.pull) == 0 || len(p.secrets) == 0 }

func (p *plan) refersTo(name string) bool {
	return slices.ContainsFunc(p.pull, func(r corev1.LocalObjectReference) bool { return r.Name == name }) ||
		slices.ContainsFunc(p.secrets, func(r corev1.ObjectReference) bool { return r.Name == name })
}
