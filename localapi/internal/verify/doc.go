// Package verify lets the rules of an API type be written one a line: the field, what must hold of it, and what the
// error says.
//
//	f.Require("kind", ref.Kind != "", "")
//	f.RequireMatch("name", ref.Name, validation.IsDNS1123Label)
//	verify.Each(f, "ports", spec.Ports, validatePort)
//
// A [Field] is where the rules stand. It adds what they report to the list of its object, in the order of the rules,
// which is the order in which clients see the errors. The path of a field is only put together for an error.
package verify
