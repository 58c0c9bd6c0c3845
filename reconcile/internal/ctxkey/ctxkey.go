// Package ctxkey has keys under which the context of a reconcile has values.
package ctxkey

import (
	"context"

	"k8s.io/klog/v2"
)

// Name is the key of the reconcile's name: the controller and the key, as a string.
type Name struct{}

// Logger is the key of the logger. Package logr does not export it, so a context finds it out when klog asks for the
// logger. With it, package reconcile makes the logger of a reconcile only when it is used.
var Logger = func() (key any) {
	klog.FromContext(spy{context.Background(), &key})
	return key
}()

// spy is a context that records the key of the last call of Value.
type spy struct {
	context.Context
	key *any
}

func (s spy) Value(key any) any {
	*s.key = key
	return nil
}
