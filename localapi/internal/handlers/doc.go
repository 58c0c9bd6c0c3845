// Package handlers implements the HTTP side of the API on top of package registry: paths, verbs, query options,
// encodings, tables, patches, watch streams, and the errors that clients know. Every request passes the server's gate
// and ends in its audit log.
package handlers
