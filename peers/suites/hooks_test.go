package suites

import "strings"

// webhookEdits let functions of the packages webhook, admission and conversion be replaced where they are declared:
// managers and builders call them, too. The suites' external test packages set the variables.
var webhookEdits = []edit{
	{
		"webhook/server.go", `func NewServer\(o Options\) Server \{\n`,
		"var FlyballNewServer func(Options) Server\n\n" +
			"${0}\tif f := FlyballNewServer; f != nil {\n\t\treturn f(o)\n\t}\n",
	},
	{ // A server that is made without its constructor.
		"webhook/server_test.go", `(?s)&webhook\.DefaultServer\{Options: (webhook\.Options\{.*?\n\t\t\})\}`,
		"webhook.NewServer($1)",
	},
	{
		"webhook/conversion/conversion.go", `func NewWebhookHandler\(.*\{\n`,
		"var (\n\tFlyballNewHandler func(*runtime.Scheme, Registry) http.Handler\n" +
			"\tFlyballIsConvertible func(*runtime.Scheme, runtime.Object) (bool, error)\n)\n\n" +
			"${0}\tif f := FlyballNewHandler; f != nil {\n\t\treturn f(scheme, registry)\n\t}\n",
	},
	{
		"webhook/conversion/conversion.go", `func IsConvertible\(.*\{\n`,
		"${0}\tif f := FlyballIsConvertible; f != nil {\n\t\treturn f(scheme, obj)\n\t}\n",
	},
	admissionEdit("webhook.go", `(wh *Webhook) Handle`, "Handle", "(ctx, wh, wh.log, req)"),
	admissionEdit("http.go", `(wh *Webhook) ServeHTTP`, "Serve", "(wh, wh.log, w, r)"),
	admissionEdit("defaulter_custom.go", `WithCustomDefaulter`, "Defaulter", "(scheme, obj, defaulter)"),
	admissionEdit("validator_custom.go", `WithCustomValidator`, "Validator", "(scheme, obj, validator)"),
	admissionEdit("multi.go", `MultiMutatingHandler`, "Mutating", "(handlers...)"),
	admissionEdit("multi.go", `MultiValidatingHandler`, "Validating", "(handlers...)"),
	admissionEdit("decode.go", `NewDecoder`, "Decoder", "(scheme)"),
}

// admissionEdit makes a function of package admission call a hook instead, if there is one. The hook is the variable of
// that name in [admissionHooks].
func admissionEdit(file, function, hook, args string) edit {
	condition, call := "Flyball"+hook+" != nil", "Flyball"+hook+args
	switch hook {
	case "Serve":
		call += "\n\t\treturn"
	case "Defaulter":
		condition += " && len(opts) == 0" // Ours has no options.
		call = "return &Webhook{Handler: " + call + "}"
	case "Validator":
		call = "return &Webhook{Handler: " + call + "}"
	default:
		call = "return " + call
	}
	name := strings.NewReplacer("(", `\(`, ")", `\)`, "*", `\*`).Replace(function)
	return edit{
		"webhook/admission/" + file, `func ` + name + `\(.*\{\n`,
		"${0}\tif " + condition + " {\n\t\t" + call + "\n\t}\n",
	}
}

// admissionHooks declares the variables of [webhookEdits] in package admission.
const admissionHooks = `package admission

import (
	"context"
	"net/http"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
)

var (
	FlyballHandle func(context.Context, *Webhook, logr.Logger, Request) Response
	FlyballServe func(*Webhook, logr.Logger, http.ResponseWriter, *http.Request)
	FlyballDefaulter func(*runtime.Scheme, runtime.Object, CustomDefaulter) Handler
	FlyballValidator func(*runtime.Scheme, runtime.Object, CustomValidator) Handler
	FlyballMutating, FlyballValidating func(...Handler) Handler
	FlyballDecoder func(*runtime.Scheme) Decoder
)
`

// setAdmission sets them, in the suite of package admission. Elsewhere they stay nil: the other suites' handlers are
// theirs, on our server.
const setAdmission = `if a := parts.Admission(); a != nil {
		inner.FlyballHandle, inner.FlyballServe, inner.FlyballDecoder = a.Handle, a.Serve, a.Decoder
		inner.FlyballDefaulter, inner.FlyballValidator = a.Defaulter, a.Validator
		inner.FlyballMutating, inner.FlyballValidating = a.Mutating, a.Validating
	}`
