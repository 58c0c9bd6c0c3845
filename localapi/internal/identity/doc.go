// Package identity generates the random parts of new objects: UIDs and the suffixes of generated names.
package identity
