// Package chapter08 has the programs of the chapter about processNextWorkItem and syncHandler: four answers to a key
// that failed, of which three are wrong, and what our controller does with each answer of a reconciler.
package chapter08
