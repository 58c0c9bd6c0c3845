package differential

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

func rolling(surge, unavailable string) func(*appsv1.DeploymentSpec) {
	return func(s *appsv1.DeploymentSpec) {
		s.Strategy = appsv1.DeploymentStrategy{
			Type: appsv1.RollingUpdateDeploymentStrategyType,
			RollingUpdate: &appsv1.RollingUpdateDeployment{
				MaxSurge: ptr.To(intstr.Parse(surge)), MaxUnavailable: ptr.To(intstr.Parse(unavailable)),
			},
		}
	}
}

func recreate(s *appsv1.DeploymentSpec) {
	s.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
}

func keeping(n int32) func(*appsv1.DeploymentSpec) {
	return func(s *appsv1.DeploymentSpec) { s.RevisionHistoryLimit = &n }
}

func deadline(seconds int32) func(*appsv1.DeploymentSpec) {
	return func(s *appsv1.DeploymentSpec) { s.ProgressDeadlineSeconds = &seconds }
}

func minReady(seconds int32) func(*appsv1.DeploymentSpec) {
	return func(s *appsv1.DeploymentSpec) { s.MinReadySeconds = seconds }
}

// holding gives pods a finalizer, so that they stay terminating until it is taken away.
func holding(s *appsv1.DeploymentSpec) { s.Template.Finalizers = []string{held} }

// all is the number of tasks after which the kubelet stops, unless a step stops it earlier.
const all = -1

// running is a Deployment whose pods are all ready, to begin with.
func running(d *appsv1.Deployment, then ...step) []step {
	return append([]step{create(d), podsAtOnce()}, then...)
}

// strategy is a patch of it.
const (
	toRecreate = `{"spec":{"strategy":{"type":"Recreate","rollingUpdate":null}}}`
	toRolling  = `{"spec":{"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":"50%","maxUnavailable":0}}}}`
)

// rolloutScenarios are about Deployments that move from one template to the next.
func rolloutScenarios() []scenario {
	return []scenario{
		{name: "create", steps: []step{create(web(3)), pods(all)}},
		{name: "rolling", steps: running(web(4), image("web", "2"), pods(all))},
		{name: "rolling-percent", steps: running(web(10, rolling("30%", "20%")), image("web", "2"), pods(all))},
		{name: "rolling-surge-only", steps: running(web(3, rolling("1", "0")), image("web", "2"), pods(all))},
		{name: "rolling-unavailable-only", steps: running(web(3, rolling("0", "1")), image("web", "2"), pods(all))},
		{name: "rolling-both-round-to-zero", steps: running(web(2, rolling("0", "20%")), image("web", "2"), pods(all))},
		{name: "rolling-all-at-once", steps: running(web(3, rolling("100%", "100%")), image("web", "2"), pods(all))},
		{name: "rolling-of-one", steps: running(web(1), image("web", "2"), pods(all))},
		{name: "rolling-broken", steps: running(web(4), image("web", "bad"), pods(all), image("web", "3"), pods(all))},
		{
			name: "rollover",
			steps: running(web(5), image("web", "2"), pods(2), image("web", "3"), pods(2), image("web", "4"),
				pods(all)),
		},
		{name: "rollover-back", steps: running(web(5), image("web", "2"), pods(4), image("web", "1"), pods(all))},
		{name: "limits-changed-during-rollout", steps: running(web(6, rolling("1", "0")), image("web", "2"), pods(2),
			patch("Deployment", "web",
				`{"spec":{"strategy":{"rollingUpdate":{"maxSurge":"50%","maxUnavailable":2}}}}`), pods(all))},
		{name: "recreate", steps: running(web(3, recreate), image("web", "2"), pods(all))},
		{
			name:  "recreate-waits-for-terminating",
			steps: running(web(2, recreate, holding), image("web", "2"), pods(all), release(), pods(all)),
		},
		{name: "recreate-over-failed-pod", steps: running(web(2, recreate),
			toPod("a pod fails", readyPod, ended("Failed")), pods(all), image("web", "2"), pods(all))},
		{
			name:  "recreate-rollover",
			steps: running(web(2, recreate), image("web", "2"), pods(1), image("web", "3"), pods(all)),
		},
		{
			name: "strategy-to-recreate",
			steps: running(web(4), image("web", "2"), pods(2), patch("Deployment", "web", toRecreate), pods(all),
				image("web", "3"), pods(all)),
		},
		{
			name: "strategy-to-rolling",
			steps: running(web(4, recreate), image("web", "2"), pods(2), patch("Deployment", "web", toRolling),
				pods(all), image("web", "3"), pods(all)),
		},
		{
			name: "pause",
			steps: running(web(3), pause("web", true), image("web", "2"), scale("web", 4), pods(all),
				image("web", "3"), pause("web", false), pods(all)),
		},
		{
			name: "pause-during-rollout",
			steps: running(web(4), image("web", "2"), pods(2), pause("web", true), pods(all), scale("web", 8),
				pods(all), pause("web", false), pods(all)),
		},
		{
			name: "pause-from-the-start",
			steps: []step{
				create(web(2, func(s *appsv1.DeploymentSpec) { s.Paused = true })), pods(all),
				pause("web", false), pods(all),
			},
		},
		{
			name: "template-annotation",
			steps: running(web(2),
				patch("Deployment", "web", `{"spec":{"template":{"metadata":{"annotations":{"restartedAt":"now"}}}}}`),
				pods(all)),
		},
		{
			name: "template-label",
			steps: running(web(2),
				patch("Deployment", "web", `{"spec":{"template":{"metadata":{"labels":{"track":"blue"}}}}}`),
				pods(all)),
		},
		{
			name: "deployment-annotation",
			steps: running(web(2), annotate("Deployment", "web", "note", "a"),
				annotate("Deployment", "web", "note", "b"),
				patch("Deployment", "web", `{"metadata":{"annotations":{"note":null}}}`), pods(all)),
		},
		{
			name: "min-ready",
			steps: []step{
				create(web(2, minReady(2), rolling("1", "0"))), podsPatiently(), image("web", "2"),
				podsPatiently(),
			},
		},
		{
			name: "min-ready-changed",
			steps: running(web(2), patch("Deployment", "web", `{"spec":{"minReadySeconds":1}}`), image("web", "2"),
				podsPatiently()),
		},
		{name: "deadline", steps: running(web(2, deadline(40)),
			until(image("web", "bad"), "the deadline has passed",
				says("web", "Progressing", "ProgressDeadlineExceeded")), podsAtOnce(),
			image("web", "3"), podsAtOnce())},
		{name: "deadline-none", steps: running(web(2, deadline(2147483647)), image("web", "2"), pods(all))},
		{name: "deadline-paused", steps: running(web(2, deadline(40)),
			until(image("web", "bad"), "the deadline has passed",
				says("web", "Progressing", "ProgressDeadlineExceeded")),
			pause("web", true), pause("web", false), scale("web", 3), pods(all))},
	}
}

// revisionScenarios are about the history of Deployments.
func revisionScenarios() []scenario {
	back := func(to string) step { return annotate("Deployment", "web", appsv1.DeprecatedRollbackTo, to) }
	cause := func(text string) step { return annotate("Deployment", "web", "kubernetes.io/change-cause", text) }
	return []scenario{
		{
			name: "undo",
			steps: running(web(2), cause("one"), image("web", "2"), cause("two"), pods(all), image("web", "1"),
				cause("one again"), pods(all), image("web", "2"), pods(all)),
		},
		{
			name: "rollback-to",
			steps: running(web(2), cause("one"), image("web", "2"), cause("two"), pods(all), image("web", "3"),
				pods(all), back("1"), pods(all)),
		},
		{name: "rollback-to-last", steps: running(web(2), image("web", "2"), pods(all), back("0"), pods(all))},
		{name: "rollback-to-nothing", steps: running(web(2), back("0"), back("7"), back("1"))},
		{
			name: "rollback-while-paused",
			steps: running(web(2), image("web", "2"), pods(all), pause("web", true), back("1"), pods(all),
				pause("web", false), pods(all)),
		},
		{name: "rollback-during-rollout", steps: running(web(4), image("web", "bad"), pods(2), back("0"), pods(all))},
		{
			name: "history",
			steps: running(web(1, keeping(1)), image("web", "2"), pods(all), image("web", "3"), pods(all),
				image("web", "4"), pods(all)),
		},
		{
			name:  "history-none",
			steps: running(web(2, keeping(0)), image("web", "2"), pods(all), image("web", "3"), pods(all)),
		},
		{
			name: "history-lowered",
			steps: running(web(1), image("web", "2"), pods(all), image("web", "3"), pods(all), image("web", "4"),
				pods(all),
				patch("Deployment", "web", `{"spec":{"revisionHistoryLimit":1}}`)),
		},
		{
			name: "history-lowered-while-paused",
			steps: running(web(1), image("web", "2"), pods(all), image("web", "3"), pods(all), pause("web", true),
				patch("Deployment", "web", `{"spec":{"revisionHistoryLimit":0}}`)),
		},
		{name: "revision-tampered", steps: running(web(1), image("web", "2"), pods(all),
			patch("ReplicaSet", webHash1, `{"metadata":{"annotations":{"deployment.kubernetes.io/revision":"40"}}}`),
			image("web", "3"), pods(all))},
	}
}

// webHash1 and webHash2 are the ReplicaSets of web with image:1 and image:2.
const (
	webHash1 = "web-554d799dbd"
	webHash2 = "web-6bfbc6d8c7"
)

// scaleScenarios are about the size of Deployments.
func scaleScenarios() []scenario {
	return []scenario{
		{name: "create-empty", steps: []step{create(web(0)), scale("web", 2), pods(all), scale("web", 0), pods(all)}},
		{name: "scale", steps: running(web(2), scale("web", 5), pods(all), scale("web", 1), pods(all))},
		{
			name:  "scale-by-many",
			steps: []step{create(web(1)), pods(all), scale("web", 25), podsAtOnce(), scale("web", 3), podsAtOnce()},
		},
		{
			name: "scale-during-rollout",
			steps: running(web(10, rolling("3", "2")), image("web", "bad"), pods(all), scale("web", 30), podsAtOnce(),
				scale("web", 5), pods(all)),
		},
		{
			name: "scale-good-rollout",
			steps: running(web(6, rolling("2", "1")), image("web", "2"), pods(3), scale("web", 12), pods(4),
				scale("web", 4), pods(all)),
		},
		{
			name:  "scale-to-nothing-during-rollout",
			steps: running(web(4), image("web", "2"), pods(2), scale("web", 0), pods(all), scale("web", 3), pods(all)),
		},
		{
			name: "scale-over-three-sets",
			steps: running(web(8, rolling("4", "2")), image("web", "2"), pods(3), image("web", "3"), pods(2),
				scale("web", 16), pods(3), scale("web", 6), pods(all)),
		},
		{
			name: "scale-recreate",
			steps: running(web(3, recreate), image("web", "2"), pods(1), scale("web", 5), pods(all), scale("web", 2),
				pods(all)),
		},
		{
			name: "scale-set-by-hand",
			steps: running(web(3), patch("ReplicaSet", webHash1, `{"spec":{"replicas":5}}`), pods(all),
				scale("web", 4), pods(all)),
		},
		{name: "desired-annotation-tampered", steps: running(web(3),
			annotate("ReplicaSet", webHash1, "deployment.kubernetes.io/desired-replicas", "9"), pods(all),
			scale("web", 4), pods(all))},
		{name: "deletion-cost", steps: running(web(4),
			toPod("one pod is cheap", readyPod, patched(costs("-5"))),
			toPod("another is dear", costless, patched(costs("10"))),
			scale("web", 3), pods(all), scale("web", 1), pods(all))},
		{
			name: "victims",
			steps: running(web(3), scale("web", 5), pods(1), toPod("a pod is not ready", readyPod, becomes(false)),
				scale("web", 4), pods(1), scale("web", 2), pods(all)),
		},
	}
}

func costs(n string) string {
	return fmt.Sprintf(`{"metadata":{"annotations":{"controller.kubernetes.io/pod-deletion-cost":%q}}}`, n)
}

// ownershipScenarios are about whose a ReplicaSet is.
func ownershipScenarios() []scenario {
	stranger := webSet(webHash1, 0, map[string]string{"app": "other"})
	older := webSet("older", 2, map[string]string{"app": "web"})
	another := webSet("another", 2, map[string]string{"app": "web"})
	another.Spec.Template.Spec.Containers[0].Image = "image:0"
	other := func(name string) *appsv1.Deployment {
		d := web(2)
		d.Name = name
		return d
	}
	return []scenario{
		{name: "collision", steps: []step{create(stranger), create(web(2)), pods(all), image("web", "2"), pods(all)}},
		{
			name:  "adopt-same-template",
			steps: []step{create(older), pods(all), second(), create(web(2)), pods(all), scale("web", 3), pods(all)},
		},
		{name: "adopt-other-template", steps: []step{create(another), pods(all), second(), create(web(2)), pods(all)}},
		{
			name: "released-set",
			steps: running(web(2), patch("ReplicaSet", webHash1, `{"metadata":{"labels":{"app":"other"}}}`), pods(all),
				patch("ReplicaSet", webHash1, `{"metadata":{"labels":{"app":"web"}}}`), pods(all)),
		},
		{
			name: "orphaned-and-adopted",
			steps: running(web(2), remove("Deployment", "web", metav1.DeletePropagationOrphan), pods(all), second(),
				create(web(3)), pods(all)),
		},
		{
			name: "orphaned-and-adopted-by-another",
			steps: running(web(2), remove("Deployment", "web", metav1.DeletePropagationOrphan), second(),
				create(other("heir")), pods(all)),
		},
		{
			name: "overlap",
			steps: []step{
				create(other("a")), pods(all), second(), create(other("b")), pods(all),
				remove("Deployment", "a"), pods(all),
			},
		},
		{name: "set-deleted", steps: running(web(2), remove("ReplicaSet", webHash1), pods(all))},
		{
			name:  "set-deleted-and-orphaned",
			steps: running(web(2), remove("ReplicaSet", webHash1, metav1.DeletePropagationOrphan), pods(all)),
		},
		{
			name: "delete-background",
			steps: running(web(2), image("web", "2"), pods(2),
				remove("Deployment", "web", metav1.DeletePropagationBackground), pods(all)),
		},
		{
			name: "delete-foreground",
			steps: running(web(2, holding), remove("Deployment", "web", metav1.DeletePropagationForeground), pods(all),
				release(), pods(all)),
		},
		{
			name:  "delete-and-create",
			steps: running(web(2), remove("Deployment", "web"), second(), create(web(3)), pods(all)),
		},
		{name: "long-name", steps: []step{create(longNamed(2)), pods(all)}},
	}
}

func longNamed(replicas int32) *appsv1.Deployment {
	d := web(replicas)
	for len(d.Name) < 240 {
		d.Name += "-and-more"
	}
	return d
}
