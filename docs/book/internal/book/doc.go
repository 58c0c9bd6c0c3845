// Package book has the functions with which tests write the traces, tables and figures of the book in docs/book. Its
// own tests write the table of contents and the drawing of the pipeline.
//
// What a page shows of a run comes from a test. Package chapterNN has the programs that chapter NN shows and the tests
// that run them; [Trace], [Block] and [Figure] compare the outcome with what stands in the book, and write it there
// with -update. Package figure draws. docs/book/WRITING.md says how to add to all this.
package book
