package secretrefresher

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	// lifetime is the age at which a secret is referred to no more, and twice that the one at which it is deleted.
	lifetime = 30 * 24 * time.Hour

	// deleteAfter is the annotation that says when a secret is too old. That it is spelled so is how it is known.
	deleteAfter = "serviaccount-secret-rotator.openshift.io/delete-after"
)

// plan is what is to be done about a service account.
type plan struct {
	// pull and secrets are the references that stay, changed whether that is not all of them.
	pull    []corev1.LocalObjectReference
	secrets []corev1.ObjectReference
	changed bool
	// remove are the secrets that are old enough to be deleted.
	remove []*corev1.Secret
	// next is when something is to be done again; zero: nothing.
	next time.Time
}

// isToken says whether a secret holds a token, which somebody asked for and nobody renews.
func isToken(s *corev1.Secret) bool { return s.Type == corev1.SecretTypeServiceAccountToken }

// expiry is when a secret is too old to be referred to.
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

// removal is when a secret is old enough to be deleted.
func removal(s *corev1.Secret) time.Time {
	end := s.CreationTimestamp.Add(2 * lifetime)
	if at, ok := annotatedEnd(s); ok && at.Before(end) {
		return at
	}
	return end
}

// planFor decides what is to be done at now. all are the secrets of the namespace, by name.
func planFor(sa *corev1.ServiceAccount, all map[string]*corev1.Secret, removeOld bool, now time.Time) (p plan) {
	soon := func(t time.Time) {
		if p.next.IsZero() || t.Before(p.next) {
			p.next = t
		}
	}
	keep := func(name string, tokens bool) bool {
		s := all[name]
		switch {
		case s == nil: // the reference leads nowhere
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
	if !removeOld || p.waits() { // what there is may be all that works
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
	slices.SortFunc(p.remove, func(a, b *corev1.Secret) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	return p
}

// waits says whether the service account has to be given secrets.
func (p *plan) waits() bool { return len(p.pull) == 0 || len(p.secrets) == 0 }

func (p *plan) refersTo(name string) bool {
	return slices.ContainsFunc(p.pull, func(r corev1.LocalObjectReference) bool { return r.Name == name }) ||
		slices.ContainsFunc(p.secrets, func(r corev1.ObjectReference) bool { return r.Name == name })
}
