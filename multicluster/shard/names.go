package shard

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/utils/ptr"
)

// kind is what a lease is for.
type kind string

// The kinds of leases.
const (
	replicaLease kind = "replica"
	clusterLease kind = "cluster"
)

// Labels and annotations of the leases.
const (
	// FleetLabel is on every lease of a fleet, with its name.
	FleetLabel = "multicluster.flyball.dev/fleet"
	// KindLabel is on every lease. Its value is replica or cluster.
	KindLabel = "multicluster.flyball.dev/lease"
	// NameAnnotation is on every lease of a cluster, with the cluster's full name.
	NameAnnotation = "multicluster.flyball.dev/name"
	// WantedAnnotation is on the lease of a cluster that another replica has requested. Its value is the session of
	// that replica.
	WantedAnnotation = "multicluster.flyball.dev/wanted-by"
	// LeavingAnnotation is on the lease of a replica that hands over all its clusters. Its value is the session of the
	// replica.
	LeavingAnnotation = "multicluster.flyball.dev/leaving"
)

// key identifies the replica or the cluster that a lease is for.
type key struct {
	kind kind
	name string
}

// keyOf returns the key of a lease. The key of a replica's lease has no name.
func keyOf(l *coordinationv1.Lease) key {
	return key{kind(l.Labels[KindLabel]), l.Annotations[NameAnnotation]}
}

// Lengths of the parts of a lease's name.
const (
	digestLength = 20  // hexadecimal digits: 80 bits
	maxReadable  = 120 // so that the whole name is a valid DNS subdomain for any fleet
)

// leaseName returns the name of a key's lease. It has a readable part, and a digest because two keys may have the same
// readable part ("eu/shop" and "eu-shop").
func leaseName(fleet string, k key) string {
	sum := sha256.Sum256([]byte(string(k.kind) + "\x00" + k.name))
	parts := []string{fleet, string(k.kind)}
	text := invalid.ReplaceAllString(strings.ToLower(k.name), "-")
	if text = strings.Trim(text[:min(len(text), maxReadable)], "-"); text != "" {
		parts = append(parts, text)
	}
	return strings.Join(append(parts, hex.EncodeToString(sum[:])[:digestLength]), "-")
}

// invalid matches the characters that are replaced in the readable part.
var invalid = regexp.MustCompile("[^a-z0-9]")

// leaseWith returns a copy of before, or a new lease if before is nil, with the given holder.
func (o *Owner) leaseWith(k key, before *coordinationv1.Lease, holder string) *coordinationv1.Lease {
	now := metav1.NowMicro()
	l := before.DeepCopy()
	if l == nil {
		l = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
			Namespace: o.options.Namespace, Name: leaseName(o.options.Fleet, k),
		}}
		l.Spec.AcquireTime = &now
	} else if holderOf(before) != holder {
		l.Spec.AcquireTime = &now
		l.Spec.LeaseTransitions = ptr.To(ptr.Deref(before.Spec.LeaseTransitions, 0) + 1)
	}
	metav1.SetMetaDataLabel(&l.ObjectMeta, FleetLabel, o.options.Fleet)
	metav1.SetMetaDataLabel(&l.ObjectMeta, KindLabel, string(k.kind))
	metav1.SetMetaDataAnnotation(&l.ObjectMeta, NameAnnotation, k.name)
	delete(l.Annotations, WantedAnnotation)
	l.Spec.HolderIdentity, l.Spec.RenewTime = &holder, &now
	l.Spec.LeaseDurationSeconds = ptr.To(int32(o.options.LeaseDuration.Seconds()))
	return l
}

// holderOf returns the session that holds a lease. It returns "" if no session holds it, or if l is nil.
func holderOf(l *coordinationv1.Lease) string {
	if l == nil {
		return ""
	}
	return ptr.Deref(l.Spec.HolderIdentity, "")
}

// Separators in a holder's identity.
const (
	sessionMark = "#"
	stuckMark   = "!"
)

// newSession returns a unique name for a session.
func newSession(identity string) string { return identity + sessionMark + rand.String(10) }

// identityOf returns the name of a session's replica.
func identityOf(session string) string {
	identity, _, _ := strings.Cut(session, sessionMark)
	return identity
}

// stuckHolder returns the holder to write into a cluster's lease when the session's work on the cluster does not end.
// It is not a session, so it is never renewed, and the lease expires.
func stuckHolder(session string) string { return session + stuckMark }
