// Package importcleaner deletes TestImageStreamTagImports that are a week old. By then the user has the image, or has
// given up.
//
// The age depends on the object alone, so a process that restarts waits only for the rest of the week.
//
// Source: pkg/controller/testimagestreamimportcleaner of openshift/ci-tools.
package importcleaner
