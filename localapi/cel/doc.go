// Package cel makes an embedded API server evaluate CEL: the validation rules of custom resources.
//
//	server, err := localapi.New(localapi.Options{CEL: cel.New()})
//
// The expressions are compiled and evaluated by the kube-apiserver's own libraries, with its limits of cost. They are
// large. That is why they are in a package of their own: a program that does not import it does not contain them.
package cel
