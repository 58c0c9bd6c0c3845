// Package expressions is what the server needs of CEL, the expression language of rules and policies. Package
// localapi/cel implements it. Servers without that package have neither its dependencies nor its size.
package expressions
