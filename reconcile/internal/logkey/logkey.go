// Package logkey has the key under which contexts have their logger. Package reconcile needs it to make the logger of a
// reconcile only when it is asked for.
package logkey

import (
	"context"

	"k8s.io/klog/v2"
)

// Key is not exported where it is declared, in package logr. So it is found by asking.
var Key = func() (key any) {
	klog.FromContext(asked{context.Background(), &key})
	return key
}()

// asked is a context that notes which key it was asked for.
type asked struct {
	context.Context
	key *any
}

func (a asked) Value(key any) any {
	*a.key = key
	return nil
}
