// Package chapter05 has the programs of chapter 5 of the book: the obvious index, and what a reader does to it that
// changes what it got. Its tests run them and write the traces, tables and figures of docs/book/05-indexer.md.
package chapter05
