// Package patterns has the controllers of docs/book/patterns.md. Each pattern is one file with two reconcilers: the
// first thing that comes to mind, and the one that the page advises. All of them work on a [Site]. The tests of
// docs/book/a-proving.md and docs/book/b-seeing.md are here as well: they prove some of these controllers, and show
// what happens in one.
package patterns
