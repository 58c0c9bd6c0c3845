// Package reviews answers questions about users: what may they do, and who are they. Reviews are created like
// objects, and answered instead of stored.
package reviews
