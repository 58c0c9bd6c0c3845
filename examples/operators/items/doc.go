// Command items is a stock-keeping tool with controllers inside.
//
//	items apply -f FILE|DIR|-       create or update items and categories
//	items count NAME QUANTITY       set how much is left of an item
//	items delete item|category NAME
//	items run                       run the controllers on the stock as it is
//	items list                      print the stock, without running the controllers
//	items tenants                   list the tenants that have stock in the store
//	items manager                   run the same controllers on a cluster, until stopped
//
// Except for the last, every call is a process of its own. It opens the store with an embedded Kubernetes API on it,
// writes the desired state, runs the controllers (package stock) until they have nothing more to do, prints the result,
// and exits. The exit code is 0 if everything was done, 1 if something failed or was left, 2 if the command line is
// wrong. README.md is a tutorial.
package main
