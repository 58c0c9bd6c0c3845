// Package chapter12 has the programs of the chapter about the process: three designs of a lease that fail, and what our
// elector, manager and fleet do in their place.
package chapter12
