package cel

import (
	"sync"

	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// The environments of new expressions, and of those that an object had before. The latter may use what was removed from
// the language.
const (
	newType    = environment.NewExpressions
	storedType = environment.StoredExpressions
)

// base is the environment that all others extend. It is built once a process, on first use.
func base() *environment.EnvSet {
	return environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
}

// compiler compiles expressions that cannot use variables. It takes milliseconds to build, so there is one.
var compiler = sync.OnceValue(func() plugincel.Compiler { return plugincel.NewCompiler(base()) })

// conditionCompiler compiles match conditions of webhooks.
var conditionCompiler = sync.OnceValue(func() plugincel.ConditionCompiler {
	return plugincel.NewConditionCompiler(base())
})

// withAuthorizer are the optional variables of most expressions.
func withAuthorizer(params bool) plugincel.OptionalVariableDeclarations {
	return plugincel.OptionalVariableDeclarations{HasParams: params, HasAuthorizer: true}
}

// withoutAuthorizer are those of message expressions.
func withoutAuthorizer(params bool) plugincel.OptionalVariableDeclarations {
	return plugincel.OptionalVariableDeclarations{HasParams: params}
}

// environmentType returns the environment for an expression that an object has or had.
func environmentType(known map[string]bool, text string) environment.Type {
	if known[text] {
		return storedType
	}
	return newType
}
