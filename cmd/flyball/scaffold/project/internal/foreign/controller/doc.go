// Package controller has the template of a controller for a kind that is not the project's own. It knows the metadata
// of such a kind alone.
package controller
