// Package chapter02 has the programs of the chapter about list and watch: a client of nothing but net/http and
// encoding/json, and a copy of the server's objects that is kept in three ways.
package chapter02
