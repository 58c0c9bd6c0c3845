package controllers

import "github.com/flyball-dev/flyball/informer"

// Trim takes away what none of the controllers reads: who set which field. That can be a third of a Pod, and is not needed
// for an update either: an object that is sent without it keeps what the server has. It is for [informer.FactoryOptions].Transform.
//
// Source: kube-controller-manager v1.37.1 cmd/kube-controller-manager/app/controllermanager.go, CreateControllerContext
func Trim(obj informer.Object) (informer.Object, error) {
	obj.SetManagedFields(nil)
	return obj, nil
}
