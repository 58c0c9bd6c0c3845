// Package chapter03 has the programs of the chapter about the reflector: two ways to follow a server that are wrong,
// and a server that fails in every way.
package chapter03
