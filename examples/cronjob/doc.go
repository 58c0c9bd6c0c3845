// Command cronjob is the controller of kubebuilder's tutorial, written for this framework. A CronJob of its own API
// group creates a Job at each time of its schedule, keeps a limited number of finished Jobs, and lists the active ones
// in its status.
//
// cronjob.go has the type and crd.yaml its definition. schedule.go parses a schedule and due.go finds the run that is
// due; neither knows of clusters. pretend.go completes Jobs on clusters that do not run them. controller.go follows the
// tutorial's seven steps. docs/coming-from-controller-runtime.md describes the differences from the tutorial, and the
// reasons for them.
//
// To see it at work:
//
//	go run ./cmd/flyball serve --kubeconfig /tmp/kubeconfig &
//	export KUBECONFIG=/tmp/kubeconfig
//	kubectl apply -f examples/cronjob/crd.yaml -f examples/cronjob/sample.yaml
//	go run ./examples/cronjob --pretend-jobs 20s &
//	kubectl get jobs -w
//
// Source: the CronJob tutorial of the kubebuilder book,
// https://book.kubebuilder.io/cronjob-tutorial/controller-implementation.
package main
