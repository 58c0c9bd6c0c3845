// Package stock has the two controllers of the stock-keeping tool. They do not know where they run: in the tool, for
// the seconds of one call, on an API embedded in the process; or on a cluster, for months.
//
//	Item ──event──▶ item controller ─────▶ Registered
//	  │                                       │ event
//	  └──event──▶ category controller ─▶ a number in the Category's status
//	                                          │ event
//	                 item controller ─────▶ Numbered ──event──▶ label (a ConfigMap) ─▶ Shelved
//
// Each arrow to the right is one write, and the event of that write leads to the next. A process that is killed between
// two writes continues there the next time. Pure functions (plan.go) compute the desired state; the controllers
// (item.go, category.go) read, write, and record events.
package stock
