// Package bench measures Flyball's parts beside the systems they stand in for, in one run.
package bench

import (
	_ "github.com/flyball-dev/flyball/workqueue"
	_ "k8s.io/client-go/util/workqueue"
	_ "sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
)
