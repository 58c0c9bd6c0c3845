// Command items is a stock-keeping tool with controllers inside.
//
//	items apply -f FILE|DIR|-       say what is in stock
//	items count NAME QUANTITY       say how much is left of an item
//	items delete item|category NAME
//	items run                       do what is due
//	items list                      tell, without doing anything
//	items tenants                   whose stock is in the store
//	items manager                   the same controllers on a cluster, for as long as it lasts
//
// But for the last, every call is a process of its own: it opens the store, an embedded Kubernetes API on it, writes what is wanted,
// runs the controllers (package stock) until there is nothing more to do, tells what became of it, and exits: with 0 when everything
// was done, 1 when something failed or was left, 2 when the command line is wrong. README.md leads through it.
package main
