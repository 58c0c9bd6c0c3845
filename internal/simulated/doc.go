// Package simulated has what the scenarios of this repository's own controllers share: a manager with some of the
// controllers, as flyball manager builds it (controllers.go), the parts of a cluster that they work beside
// (cluster.go), and roles that are read from manifests (roles.go). Only tests import it.
package simulated
