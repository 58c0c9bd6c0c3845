// Package chapter04 has the programs of chapter 4 of the book: three queues between a server and a cache, of which two
// show a cluster that never was. Its tests run them and write the traces and figures of docs/book/04-deltafifo.md.
package chapter04
