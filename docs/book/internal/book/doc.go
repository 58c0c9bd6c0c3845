// Package book holds what the book in docs/book is made of besides its text: the list of its chapters, the drawing of
// the pipeline, and the functions with which tests write the book's traces, tables and figures.
//
// What a page shows of a run comes from a test. Package chapterNN has the programs that chapter NN shows and the tests
// that run them; [Trace], [Block] and [Figure] compare the outcome with what stands in the book, and write it there
// with -update. Package figure draws. docs/book/WRITING.md says how to add to all this.
package book
