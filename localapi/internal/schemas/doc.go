// Package schemas has the schemas of the built-in types by which field owners are told apart: which lists are sets,
// which are maps and by what keys, which structs are atomic. They are those that client-go generates from Kubernetes'
// OpenAPI document.
//
// client-go parses all of them at once, which takes about 75 ms. Here a kind's are parsed when its first object is
// written.
package schemas
