// Package manager has the names of controller-runtime for package manager, whose Manager is a struct.
//
// Source: controller-runtime v0.25.2 pkg/manager.
package manager

import "github.com/flyball-dev/flyball/manager"

// Names for types of package manager.
type (
	Manager      = *manager.Manager
	Options      = manager.Options
	Runnable     = manager.Runnable
	RunnableFunc = manager.RunnableFunc
)

// New is manager.New.
var New = manager.New

// LeaderElectionRunnable is a Runnable that decides whether it needs leadership.
type LeaderElectionRunnable interface {
	NeedLeaderElection() bool
}
