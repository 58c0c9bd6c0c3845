// Command items is a stock-keeping tool with controllers inside.
//
//	items apply -f FILE|DIR|-       say what is in stock
//	items count NAME QUANTITY       say how much is left of an item
//	items delete item|category NAME
//	items run                       do what is due
//	items list                      print the stock, without doing anything
//	items tenants                   print whose stock is in the store
//	items manager                   run the same controllers on a cluster, until stopped
//
// Except for the last, every call is a process of its own. It opens the store with an embedded Kubernetes API on it,
// writes the desired state, runs the controllers (package stock) until there is nothing more to do, prints the result,
// and exits: with 0 if everything was done, 1 if something failed or was left, 2 if the command line is wrong.
// README.md is a tutorial.
package main
