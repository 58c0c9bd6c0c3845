// Package site renders the documentation, which is Markdown, as HTML: a page for each file, with the parts of the book
// beside it, and a search. The pages need no network and no server, so that they can also be opened as files.
package site
