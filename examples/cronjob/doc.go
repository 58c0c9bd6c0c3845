// Command cronjob is the controller of kubebuilder's tutorial, written afresh: a CronJob of its own API group makes a Job at each
// time of its schedule, keeps as many finished ones as it is told, and lists the active ones in its status.
//
// cronjob.go is the type, crd.yaml its definition, schedule.go reads a schedule, due.go says which run is due: both know
// nothing of clusters. pretend.go completes Jobs where nobody runs them. controller.go does the tutorial's seven steps. docs/coming-from-controller-runtime.md tells where it reads
// differently from what is known, and why.
//
// To see it at work:
//
//	go run ./cmd/flyball serve --kubeconfig /tmp/kubeconfig &
//	export KUBECONFIG=/tmp/kubeconfig
//	kubectl apply -f examples/cronjob/crd.yaml -f examples/cronjob/sample.yaml
//	go run ./examples/cronjob --pretend-jobs 20s &
//	kubectl get jobs -w
//
// Source: the CronJob tutorial of the kubebuilder book, https://book.kubebuilder.io/cronjob-tutorial/controller-implementation.
package main
