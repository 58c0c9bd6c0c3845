// Package sliceset reads and writes the EndpointSlices that one controller manages. The controllers of EndpointSlices
// and of mirrored ones compute different contents, but find, compare, write and watch their slices in the same way.
//
//	set.go           finds a key's slices, and turns events of slices into keys
//	write.go         a Batch of writes, and how it is carried out
//	endpoint.go      which endpoints are the same, and what is wanted but in no slice yet
//	generations.go   distinguishes the controller's own changes of a slice from those of others
package sliceset
