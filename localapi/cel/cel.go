package cel

import "github.com/flyball-dev/flyball/localapi/internal/expressions"

// New returns the value for the option CEL of a server (localapi.Options). It does nothing until the first expression
// is compiled. Servers may share one.
func New() expressions.Evaluator { return evaluator{} }

// evaluator evaluates by the libraries of the kube-apiserver. Their environments are built once a process, on first
// use.
type evaluator struct{}
