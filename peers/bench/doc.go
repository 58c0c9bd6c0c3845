// Package bench measures Flyball's parts and the systems that they replace. Its benchmarks are named
// Benchmark<table>/<row>/<system>. The command in cmd/parts runs them in turns, and makes a table of each.
package bench

import (
	_ "github.com/flyball-dev/flyball/workqueue"
	_ "k8s.io/client-go/util/workqueue"
	_ "sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
)
