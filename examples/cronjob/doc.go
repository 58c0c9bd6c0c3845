//go:generate -command controller-gen go tool -modfile=../../tools/go.mod controller-gen
//go:generate controller-gen crd object webhook rbac:roleName=cronjob-controller paths=. output:dir=.
//go:generate mv manifests.yaml webhooks.yaml

// +groupName=batch.examples.flyball.dev
// +versionName=v1

// Command cronjob is the controller of kubebuilder's tutorial, written for this framework. A CronJob of its own API
// group creates a Job at each time of its schedule, keeps a limited number of finished Jobs, and lists the active ones
// in its status.
//
// cronjob.go has the type, with markers from which "make generate" makes its definition and the functions that copy
// it. schedule.go parses a schedule and due.go finds the run that is due; neither knows of clusters. pretend.go
// completes Jobs on clusters that do not run them. controller.go follows the tutorial's seven steps; the markers in it
// become role.yaml. webhook.go sets the tutorial's defaults and rejects schedules that cannot be parsed; its markers
// become webhooks.yaml. The webhooks are optional: without them, a limit that is not set keeps all Jobs, and the
// controller ignores a CronJob whose schedule cannot be parsed.
// docs/coming-from-controller-runtime.md describes the differences from the tutorial, and the reasons for them.
//
// To see it at work:
//
//	go run ./cmd/flyball serve --kubeconfig /tmp/kubeconfig &
//	export KUBECONFIG=/tmp/kubeconfig
//	kubectl apply -f examples/cronjob/batch.examples.flyball.dev_cronjobs.yaml
//	kubectl apply -f examples/cronjob/sample.yaml
//	go run ./examples/cronjob --pretend-jobs 20s &
//	kubectl get jobs -w
//
// With the webhooks, the first and the fifth line are:
//
//	go run ./cmd/flyball serve --kubeconfig /tmp/kubeconfig --webhook-service default/cronjob-webhooks=127.0.0.1:9443 &
//	go run ./examples/cronjob --pretend-jobs 20s --webhooks &
//
// and once it runs, kubectl apply -f examples/cronjob/webhooks.yaml has the API call them.
//
// Source: the CronJob tutorial of the kubebuilder book,
// https://book.kubebuilder.io/cronjob-tutorial/controller-implementation.
package main
