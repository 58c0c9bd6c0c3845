// Package controller is the operator of Projects. It works in two places:
//
//	Project ─▶ project.go ─▶ ProjectControlPlane ─▶ (an infrastructure provider) ─▶ an API server per Project
//	                                                                                   ▲
//	Projects that are Ready ─▶ the provider of project control planes ─▶ a fleet ─▶ tenant.go: what every control plane has
//
// project.go reconciles a Project, and cleanup.go its deletion. Both decide with plan.go, which knows nothing of
// clusters. tenant.go is one controller for all control planes; its requests name the Project.
package controller
