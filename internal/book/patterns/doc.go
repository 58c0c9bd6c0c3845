// Package patterns has the controllers of docs/book/patterns.md. Each pattern is one file with two reconcilers: the
// first thing that comes to mind, and the one that the page advises. All of them work on a [Site].
package patterns
