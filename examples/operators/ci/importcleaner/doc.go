// Package importcleaner deletes TestImageStreamTagImports that are a week old: who needed the image has it, or has given up.
//
// The age follows from the object alone, so a process that starts again waits for what is left of it.
//
// Source: pkg/controller/testimagestreamimportcleaner of openshift/ci-tools.
package importcleaner
