// Package citest holds what the tests of the CI operators share: embedded clusters with the operators' kinds, and
// scenarios that run on any clusters.
package citest
