// Package ciconfig reads the configuration of the CI system from folders: what each branch of each repository builds,
// tests with and promotes, and which jobs run for it. An [Agent] reads the folders again when they change, maintains
// indexes of the configuration, and is a source of the index keys that gained a configuration.
//
//	folder ─read every Interval─▶ configs ─index─▶ keys ─▶ compare with the last read ─▶ reconcile.Source
package ciconfig
