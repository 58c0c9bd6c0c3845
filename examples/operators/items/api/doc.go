// Package api holds the kinds of a small stock-keeping tool, as Go types and, in the folder crds, as the definitions of the resources:
// an Item is something on a shelf, a Category is the shelf, and numbers what stands on it.
package api
