// Package chapter07 has the programs of the chapter about the work queue: four designs of a queue, of which three are
// wrong, and the scenario that tells them apart.
package chapter07
