// Package terminal has the commands of kubectl that the playground offers. It prints what kubectl prints, because the
// server makes the tables. It is no part of kubectl: what it links is little more than client-go.
//
// terminal.go reads a command line and finds resources; get.go, change.go and rollout.go have the commands; table.go
// prints tables.
package terminal
