// Package api has the kinds of a small stock-keeping tool, as Go types and, in the folder crds, as the definitions of
// the resources. An Item is something on a shelf. A Category is the shelf, and numbers the items on it.
package api
