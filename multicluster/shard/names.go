package shard

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"k8s.io/apimachinery/pkg/util/rand"
)

// kind is what a lease is for.
type kind string

// The kinds of leases.
const (
	replicaLease kind = "replica"
	clusterLease kind = "cluster"
	partLease    kind = "part"
)

// Labels and annotations of the leases.
const (
	// FleetLabel is on every lease of a fleet, with its name.
	FleetLabel = "multicluster.flyball.dev/fleet"
	// KindLabel is what the lease is for: replica, cluster, or part (of the objects of one cluster).
	KindLabel = "multicluster.flyball.dev/lease"
	// NameAnnotation is the full name of what the lease is for: the name of the cluster, say.
	NameAnnotation = "multicluster.flyball.dev/name"
	// WantedAnnotation is on the lease of a cluster that another replica requests. Its value is that replica's session.
	WantedAnnotation = "multicluster.flyball.dev/wanted-by"
	// LeavingAnnotation is on the lease of a replica that hands over all its clusters. Its value is the replica's
	// session.
	LeavingAnnotation = "multicluster.flyball.dev/leaving"
)

// key is what a lease is for.
type key struct {
	kind kind
	name string
}

// Lengths of the parts of a lease's name.
const (
	digestLength = 20  // hexadecimal digits: 80 bits
	maxReadable  = 120 // keeps the whole a DNS subdomain, with any fleet's name
)

// leaseName returns the name of a key's lease. It has a readable part, and a digest that distinguishes keys with the
// same readable part ("eu/shop" and "eu-shop").
func leaseName(fleet string, k key) string {
	sum := sha256.Sum256([]byte(string(k.kind) + "\x00" + k.name))
	parts := []string{fleet, string(k.kind)}
	if text := readable(k.name); text != "" {
		parts = append(parts, text)
	}
	return strings.Join(append(parts, hex.EncodeToString(sum[:])[:digestLength]), "-")
}

// readable returns name with the characters replaced that a lease's name cannot have.
func readable(name string) string {
	text := strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9':
			return r
		case 'A' <= r && r <= 'Z':
			return r - 'A' + 'a'
		}
		return '-'
	}, name)
	return strings.Trim(text[:min(len(text), maxReadable)], "-")
}

// Separators in a holder's identity.
const (
	sessionMark = "#"
	stuckMark   = "!"
)

// newSession returns a new, unique name for a session.
func newSession(identity string) string { return identity + sessionMark + rand.String(10) }

// identityOf returns the replica of a session.
func identityOf(session string) string {
	identity, _, _ := strings.Cut(session, sessionMark)
	return identity
}

// stuckHolder returns the holder to write into a cluster's lease when the session's work on the cluster does not end.
// Nobody renews that holder.
func stuckHolder(session string) string { return session + stuckMark }
