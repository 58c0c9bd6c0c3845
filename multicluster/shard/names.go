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

// What leases are found and told apart by.
const (
	// FleetLabel is on every lease of a fleet, with its name.
	FleetLabel = "multicluster.flyball.dev/fleet"
	// KindLabel is what the lease is for: replica, cluster, or part (of the objects of one cluster).
	KindLabel = "multicluster.flyball.dev/lease"
	// NameAnnotation is what the lease is for, in full: the name of the cluster, say.
	NameAnnotation = "multicluster.flyball.dev/name"
	// WantedAnnotation is on the lease of a cluster that another replica should serve, and is ready to: its session.
	WantedAnnotation = "multicluster.flyball.dev/wanted-by"
	// LeavingAnnotation is on the lease of a replica that hands over all it has: its session.
	LeavingAnnotation = "multicluster.flyball.dev/leaving"
)

// key is what a lease is for.
type key struct {
	kind kind
	name string
}

// What names of leases are made of.
const (
	digestLength    = 20  // hexadecimal digits: 80 bits
	longestReadable = 120 // so that the whole is a DNS subdomain, with any fleet's name
)

// leaseName is the name of a key's lease: what people can read of it, and a digest of all of it, so that names that
// read alike ("eu/shop" and "eu-shop") are different ones.
func leaseName(fleet string, k key) string {
	sum := sha256.Sum256([]byte(string(k.kind) + "\x00" + k.name))
	parts := []string{fleet, string(k.kind)}
	if text := readable(k.name); text != "" {
		parts = append(parts, text)
	}
	return strings.Join(append(parts, hex.EncodeToString(sum[:])[:digestLength]), "-")
}

// readable is a name with what a lease's name cannot have replaced.
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
	return strings.Trim(text[:min(len(text), longestReadable)], "-")
}

// What stands between the parts of a holder's identity.
const (
	sessionMark = "#"
	stuckMark   = "!"
)

// newSession makes the name of a session: no two have the same, those of one replica included.
func newSession(identity string) string { return identity + sessionMark + rand.String(10) }

// identityOf is the replica whose session it is.
func identityOf(session string) string {
	identity, _, _ := strings.Cut(session, sessionMark)
	return identity
}

// stuckHolder is who holds the lease of a cluster for which work of that session would not end: nobody who renews it.
func stuckHolder(session string) string { return session + stuckMark }
