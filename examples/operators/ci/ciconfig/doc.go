// Package ciconfig reads the configuration of the CI system from folders: what each branch of each repository builds,
// tests with and promotes, and which jobs run for it. An [Agent] reads it again when it changes, maintains indexes of
// it, and is a source of the index keys that gained a configuration.
//
//	folder ─read every Interval─▶ configs ─index─▶ keys ─▶ difference to before ─▶ reconcile.Source
package ciconfig
