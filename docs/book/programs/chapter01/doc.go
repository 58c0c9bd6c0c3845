// Package chapter01 has the programs of the chapter about the control loop: the loop of docs/book/shell/keep.sh in Go,
// and what goes wrong with it.
package chapter01
