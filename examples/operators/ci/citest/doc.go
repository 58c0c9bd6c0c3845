// Package citest is what tests of the CI operators have in common: embedded clusters with the operators' kinds, and scenarios
// that run on any clusters.
package citest
