package differential

import (
	"context"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// seeded is a scenario that chance writes: the name, which holds the seed, decides everything.
func seeded(seed int) scenario {
	return scenario{name: fmt.Sprintf("seed-%d", seed), steps: []step{
		chanceDeployment, chanceService, pods(all), chances(12),
		atLast(image("web", "9")), atLast(pause("web", false)), pods(all), chances(3), pods(all),
	}}
}

// atLast does something to the Deployment if it is still there.
func atLast(s step) step {
	return func(ctx context.Context, e *env) (string, bool, error) {
		if e.side.rec.find(e.ns, "Deployment", "web") == nil {
			return "", false, nil
		}
		return s(ctx, e)
	}
}

// oneOf is one of several values.
func oneOf[T any](e *env, values ...T) T { return values[e.rng.IntN(len(values))] }

// chanceDeployment creates the Deployment, in one of many shapes.
func chanceDeployment(ctx context.Context, e *env) (string, bool, error) {
	d := web(int32(e.rng.IntN(8)))
	if e.rng.IntN(4) == 0 {
		recreate(&d.Spec)
	} else {
		limits := oneOf(e, [2]string{"25%", "25%"}, [2]string{"1", "0"}, [2]string{"0", "1"}, [2]string{"2", "1"},
			[2]string{"50%", "0"}, [2]string{"0", "40%"}, [2]string{"100%", "100%"}, [2]string{"10%", "10%"})
		rolling(limits[0], limits[1])(&d.Spec)
	}
	if e.rng.IntN(2) == 0 {
		keeping(int32(e.rng.IntN(3)))(&d.Spec)
	}
	d.Spec.Paused = e.rng.IntN(8) == 0
	return create(d)(ctx, e)
}

// chanceService creates a Service for it.
func chanceService(ctx context.Context, e *env) (string, bool, error) {
	return create(svc(oneOf(e, headless, func(*corev1.Service) {},
		func(s *corev1.Service) { s.Spec.PublishNotReadyAddresses = true },
		ports(toNamed("http", "http", corev1.ProtocolTCP, 80)))))(ctx, e)
}

// chances are n things that a user does, with a few tasks of the kubelet after each.
func chances(n int) step {
	return func(ctx context.Context, e *env) (string, bool, error) {
		if e.left > 0 {
			if tasks := e.tasks(); len(tasks) > 0 {
				e.left--
				t := tasks[e.rng.IntN(len(tasks))]
				return fmt.Sprintf("kubelet: %s a pod %s", t.does, t.set), true, e.do(ctx, t, 1)
			}
		}
		if e.turns == n {
			e.turns = 0
			return "", false, nil
		}
		e.turns++
		e.left = e.rng.IntN(5)
		said, _, err := e.chance()(ctx, e)
		return said, true, err
	}
}

// chance is something that a user does.
func (e *env) chance() step {
	if e.side.rec.find(e.ns, "Deployment", "web") == nil {
		return create(web(int32(1 + e.rng.IntN(5))))
	}
	switch e.rng.IntN(20) {
	case 0, 1, 2:
		return scale("web", e.rng.IntN(10))
	case 3, 4, 5, 6:
		return image("web", oneOf(e, "1", "2", "3", "4", "bad"))
	case 7:
		return pause("web", oneOf(e, true, false))
	case 8:
		return annotate("Deployment", "web", oneOf(e, "note", "kubernetes.io/change-cause"),
			fmt.Sprint(e.rng.IntN(100)))
	case 9:
		return annotate("Deployment", "web", appsv1.DeprecatedRollbackTo, fmt.Sprint(e.rng.IntN(4)))
	case 10:
		return patch("Deployment", "web",
			oneOf(e, toRecreate, toRolling,
				`{"spec":{"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":3,"maxUnavailable":1}}}}`))
	case 11:
		return patch("Deployment", "web", fmt.Sprintf(`{"spec":{"revisionHistoryLimit":%d}}`, e.rng.IntN(3)))
	case 12, 13:
		return e.toSomePod("is not ready", readyPod, becomes(false))
	case 14:
		return e.toSomePod("ends", readyPod, ended(oneOf(e, corev1.PodFailed, corev1.PodSucceeded)))
	case 15:
		return e.toSomePod("is deleted", readyPod, deleted)
	case 16:
		return e.toSomePod("gets another label", readyPod, patched(`{"metadata":{"labels":{"app":"other"}}}`))
	case 17:
		return e.chanceSet()
	case 18:
		return patch("Service", "web",
			oneOf(e, `{"spec":{"publishNotReadyAddresses":true}}`, `{"spec":{"publishNotReadyAddresses":false}}`,
				`{"metadata":{"labels":{"tier":"x"}}}`,
				`{"spec":{"ports":[{"name":"http","port":80,"targetPort":8081}]}}`,
				`{"spec":{"selector":{"app":"other"}}}`, `{"spec":{"selector":{"app":"web"}}}`))
	}
	return remove("Deployment", "web",
		oneOf(e, metav1.DeletePropagationBackground, metav1.DeletePropagationForeground,
			metav1.DeletePropagationOrphan))
}

// chanceSet does something to one of the ReplicaSets.
func (e *env) chanceSet() step {
	var names []string
	for _, o := range e.side.rec.list(e.ns, "ReplicaSet") {
		if o.GetDeletionTimestamp() == nil {
			names = append(names, o.GetName())
		}
	}
	if len(names) == 0 {
		return scale("web", 2)
	}
	slices.Sort(names)
	return oneOf(e, func(name string) step { return remove("ReplicaSet", name) },
		func(name string) step { return e.oneMore(name) },
		func(name string) step { return patch("ReplicaSet", name, `{"metadata":{"labels":{"app":"other"}}}`) },
		func(name string) step { return patch("ReplicaSet", name, `{"metadata":{"labels":{"app":"web"}}}`) })(
		oneOf(e, names...),
	)
}

// oneMore raises the size of a ReplicaSet. (After lowering it, it would be chance whether its controller deletes pods
// before the Deployment's controller raises it again.)
func (e *env) oneMore(name string) step {
	size, _, _ := unstructured.NestedInt64(e.side.rec.find(e.ns, "ReplicaSet", name).Object, "spec", "replicas")
	return patch("ReplicaSet", name, fmt.Sprintf(`{"spec":{"replicas":%d}}`, size+1))
}

// toSomePod does something to one of the pods that pick takes. Those that are alike are one to it.
func (e *env) toSomePod(what string, pick func(*unstructured.Unstructured) bool,
	f func(context.Context, *env, *unstructured.Unstructured) error,
) step {
	alike := map[string]*unstructured.Unstructured{}
	for _, pod := range e.podsByAge() {
		if pick(pod) {
			e.names.learn(pod)
			alike[podName(pod)+"\n"+e.names.body(pod).String()] = pod
		}
	}
	if len(alike) == 0 {
		return scale("web", 3)
	}
	pod := alike[oneOf(e, slices.Sorted(maps.Keys(alike))...)]
	return act(fmt.Sprintf("pod %s %s", podName(pod), what),
		func(ctx context.Context, e *env) error { return f(ctx, e, pod) })
}
