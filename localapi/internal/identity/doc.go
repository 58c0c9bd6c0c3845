// Package identity makes the random parts of new objects: UIDs and the ends of generated names.
package identity
