// Package ctxkey has keys for values in the context of a reconcile.
package ctxkey

import (
	"context"

	"k8s.io/klog/v2"
)

// Name is the key of the reconcile's name: the controller and the key, as a string.
type Name struct{}

// Logger is the key of the logger. Package logr does not export its key, so the context spy finds it out when klog asks
// for the logger. With this key, package reconcile can build the logger of a reconcile only when the reconciler logs
// something.
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
