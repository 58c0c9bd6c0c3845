//go:generate -command controller-gen go tool -modfile=../../../../tools/go.mod controller-gen
//go:generate controller-gen rbac:roleName=project-operator paths=. output:rbac:dir=../manifests

// Package controller reconciles Projects, and the control plane of each Project:
//
//	Project ─▶ project.go ─▶ ProjectControlPlane ─▶ (an infrastructure provider) ─▶ an API server per Project
//	                                                                                   ▲
//	Projects that are Ready ─▶ the provider of project control planes ─▶ a fleet ─▶ tenant.go: objects that every control plane has
//
// project.go reconciles a Project, and cleanup.go deletes one. Both get their decisions from plan.go, which makes no
// requests. tenant.go is one controller for all control planes; its requests name the Project.
package controller
