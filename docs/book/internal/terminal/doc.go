// Package terminal runs what a reader of the book types: commands of a shell, beside an API server as flyball serve has
// it. The tests of a chapter write the outcome into its page.
package terminal
