// Package api defines the kinds of a small stock-keeping tool, as Go types and, in the folder crds, as
// CustomResourceDefinitions. An Item is something on a shelf. A Category is the shelf, and numbers its items.
package api
