// Package stock is the two controllers of the stock-keeping tool. They know nothing of where they run: in the tool, for the seconds of
// one call, on an API embedded in the process; or on a cluster, for months.
//
//	Item ──event──▶ item controller ─────▶ Registered
//	  │                                       │ event
//	  └──event──▶ category controller ─▶ a number in the Category's status
//	                                          │ event
//	                 item controller ─────▶ Numbered ──event──▶ label (a ConfigMap) ─▶ Shelved
//
// Each arrow to the right is one write, and the event of that write is what leads on: a process that is killed between two goes on
// there the next time. What is wanted is computed by pure functions (plan.go); the controllers (item.go, category.go) read, write, and
// record events.
package stock
