// Package simulated has programs for Others of a [simtest.Scenario]: the parts of a cluster that a controller works
// beside. They are a node and a garbage collector of a few resources (cluster.go), and a manager with some of the
// controllers of Kubernetes, as flyball manager builds it (controllers.go). The package also reads the Roles of a
// scenario from manifests (roles.go).
package simulated
