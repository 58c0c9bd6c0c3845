//go:generate -command controller-gen go tool -modfile=../../../../tools/go.mod controller-gen
//go:generate controller-gen rbac:roleName=items-manager paths=. output:rbac:dir=../deploy

// Package stock has the two controllers of the stock-keeping tool. They do not depend on where they run: in the tool,
// for a few seconds, on an API embedded in the process; or on a cluster, for months.
//
//	Item ──event──▶ item controller ─────▶ Registered
//	  │                                       │ event
//	  └──event──▶ category controller ─▶ a number in the Category's status
//	                                          │ event
//	                 item controller ─────▶ Numbered ──event──▶ label (a ConfigMap) ─▶ Shelved
//
// Each arrow to the right is one write, whose event leads to the next. If a process is killed between two writes, the
// next process continues there. Pure functions (plan.go) compute the desired state; the controllers
// (item.go) read, write, and record events.
package stock
