// Package bench measures Flyball's parts and the systems that they replace, in one run.
package bench

import (
	_ "github.com/flyball-dev/flyball/workqueue"
	_ "k8s.io/client-go/util/workqueue"
	_ "sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
)
