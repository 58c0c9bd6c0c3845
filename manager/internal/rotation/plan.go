package rotation

import (
	"crypto/x509"
	"slices"
	"time"
)

const (
	// settle is how long every configuration must have had a new authority before it signs. API servers watch the
	// configurations, so they learn of a change within moments; a busy one takes a little longer.
	settle = 20 * time.Second
	// recheckInterval is the longest time between two reconciles. A clock that jumps wakes no timer.
	recheckInterval = 10 * time.Minute
	// maxTrusted is the maximum number of authorities in a bundle.
	maxTrusted = 4
)

// observed is everything that a decision depends on.
type observed struct {
	now   time.Time
	names []string // that the certificate must have
	// state is that of the Secret, or the last one in memory if the Secret was lost.
	state state
	// published are the authorities in the configurations, if the Secret was lost. They must stay trusted, because
	// replicas may serve certificates that they have signed.
	published []*x509.Certificate
	// settled means that every existing configuration has had state.next for long enough.
	settled bool
}

// decision is what to do, in this order.
type decision struct {
	create  bool // make the next authority
	promote bool // let the next authority sign
	sign    bool // sign a certificate
	// names are those of the certificate that is signed.
	names []string
	// trusted is the bundle, without the authority that is to be created.
	trusted []*x509.Certificate
}

// plan decides what to do. It is a pure function.
func plan(o observed) (d decision) {
	s := o.state
	canSign := s.signing != nil && isValid(s.signing.Certificate(), o.now)
	hasNext := s.next != nil && isValid(s.next.Certificate(), o.now)
	d.trusted = unexpired(slices.Concat(s.trusted, o.published), o.now)
	serves := serves(s, d.trusted, o)
	if !hasNext && (!canSign || isEnding(s.signing.Certificate(), o.now)) {
		d.create = true
	}
	switch {
	case hasNext:
		d.promote = o.settled || !canSign && !mayBeServing(s, d.trusted, serves)
	case d.create:
		d.promote = !canSign && !mayBeServing(s, d.trusted, serves)
	}
	if canSign || d.promote {
		d.sign = d.promote || !serves || s.canExtend() && isEnding(s.serving.Leaf, o.now)
	}
	d.names = o.names
	if s.serving != nil && !(s.canExtend() && isEnding(s.serving.Leaf, o.now)) {
		// During a rollout, another version may want other names. If each version signed only for its own names, they
		// would replace each other's certificates forever. Names that are not needed any more go at the next renewal.
		d.names = union(o.names, namesOf(s.serving.Leaf))
	}
	return d
}

// namesOf returns the names and addresses of a certificate.
func namesOf(leaf *x509.Certificate) []string {
	names := slices.Clone(leaf.DNSNames)
	for _, ip := range leaf.IPAddresses {
		names = append(names, ip.String())
	}
	return names
}

func union(names, more []string) []string {
	all := slices.Clone(names)
	for _, name := range more {
		if !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}

// mayBeServing reports whether a replica may be serving a certificate that is trusted now. Then a new authority must
// not sign before it is trusted as well.
func mayBeServing(s state, trusted []*x509.Certificate, serves bool) bool {
	return serves || slices.ContainsFunc(trusted, func(c *x509.Certificate) bool {
		return s.next == nil || !c.Equal(s.next.Certificate())
	})
}

// serves reports whether the certificate can be served: it is valid, has all names, and a trusted authority signed it.
func serves(s state, trusted []*x509.Certificate, o observed) bool {
	return s.serving != nil && verify(s.serving.Leaf, trusted, o.names, o.now) == nil
}

// verify returns why clients that trust these authorities would reject the certificate for one of the names.
func verify(leaf *x509.Certificate, trusted []*x509.Certificate, names []string, now time.Time) error {
	roots := x509.NewCertPool()
	for _, c := range trusted {
		roots.AddCert(c)
	}
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now}); err != nil {
		return err
	}
	for _, name := range names {
		if err := leaf.VerifyHostname(name); err != nil {
			return err
		}
	}
	return nil
}

// unexpired returns the certificates that have not expired, without duplicates, the newest first. It includes those
// that are not valid yet: another replica may have made them, and our clock may be slow.
func unexpired(all []*x509.Certificate, now time.Time) (kept []*x509.Certificate) {
	for _, c := range all {
		if now.Before(c.NotAfter) && !contains(kept, c) {
			kept = append(kept, c)
		}
	}
	slices.SortStableFunc(kept, func(a, b *x509.Certificate) int { return b.NotBefore.Compare(a.NotBefore) })
	return kept[:min(len(kept), maxTrusted)]
}

func isValid(c *x509.Certificate, now time.Time) bool {
	return !now.Before(c.NotBefore) && now.Before(c.NotAfter)
}

// isEnding reports whether a successor is needed, because a third of the lifetime or less is left.
func isEnding(c *x509.Certificate, now time.Time) bool { return !now.Before(renewal(c)) }

func renewal(c *x509.Certificate) time.Time {
	return c.NotAfter.Add(-c.NotAfter.Sub(c.NotBefore) / 3)
}

// canExtend reports whether there is an authority that expires later than the certificate. Otherwise a new certificate
// would not last longer, because no certificate outlasts its authority. s.serving must not be nil.
func (s state) canExtend() bool {
	return s.signing != nil && s.signing.Certificate().NotAfter.After(s.serving.Leaf.NotAfter)
}

// pause returns the time until something has to be done, if nothing changes.
func (s state) pause(now time.Time) time.Duration {
	pause := recheckInterval
	if s.next != nil {
		pause = settle
	}
	if s.signing != nil && s.next == nil {
		pause = min(pause, renewal(s.signing.Certificate()).Sub(now))
	}
	if s.serving != nil && s.canExtend() {
		pause = min(pause, renewal(s.serving.Leaf).Sub(now))
	}
	return max(pause, time.Second)
}
