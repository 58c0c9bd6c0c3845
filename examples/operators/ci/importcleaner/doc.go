// Package importcleaner deletes TestImageStreamTagImports that are a week old. By then users have their images, or have
// given up.
//
// The age is computed from the object alone, so a restart does not start the week again.
//
// Source: pkg/controller/testimagestreamimportcleaner of openshift/ci-tools.
package importcleaner
