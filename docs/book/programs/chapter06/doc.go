// Package chapter06 has the programs of chapter 6 of the book: a server in memory, and three ways to tell a quick and a
// slow handler what it says. Its tests run them and write the traces, tables and figures of docs/book/06-informers.md.
package chapter06
