package kubelet_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/localapi/kubelet"
)

// told is the phase and reason of a pod, and the state and restarts of each container.
func told(pod *corev1.Pod) string {
	s := strings.TrimSuffix(fmt.Sprintf("%s %s", pod.Status.Phase, pod.Status.Reason), " ")
	for _, cs := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
		state := "running"
		switch {
		case cs.State.Waiting != nil:
			state = cs.State.Waiting.Reason
		case cs.State.Terminated != nil:
			state = fmt.Sprintf("%s(%d)", cs.State.Terminated.Reason, cs.State.Terminated.ExitCode)
		}
		s += fmt.Sprintf(", %s %s %d", cs.Name, state, cs.RestartCount)
	}
	return s
}

// life looks at a pod every second, and returns what changed, each with the second at which it was seen.
func (c *cluster) life(name string, d time.Duration) string {
	c.t.Helper()
	after(0)
	var lines []string
	last := ""
	for second := range int(d/time.Second) + 1 {
		if now := told(c.pod(name)); now != last {
			last = now
			lines = append(lines, fmt.Sprintf("%d: %s", second, now))
		}
		after(time.Second)
	}
	return strings.Join(lines, "\n")
}

// ends lets the containers of a pod end.
func ends(after, code string, policy corev1.RestartPolicy) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.RestartPolicy = policy
		p.Annotations = map[string]string{kubelet.AnnotationEndsAfter: after, kubelet.AnnotationExitCode: code}
	}
}

func ofJob(p *corev1.Pod) {
	p.Spec.RestartPolicy = corev1.RestartPolicyNever
	p.OwnerReferences = []metav1.OwnerReference{
		{APIVersion: "batch/v1", Kind: "Job", Name: "j", UID: "uid-j", Controller: ptr.To(true)},
	}
}

// Source: k8s.io/kubernetes v1.37.2 pkg/kubelet/kubelet_pods.go, getPhase and convertToAPIContainerStatuses;
// pkg/kubelet/kubelet.go, newCrashLoopBackOff; pkg/api/v1/pod/util.go, ContainerShouldRestart
func TestContainersEnd(t *testing.T) {
	sidecar := corev1.Container{
		Name: "side", Image: "nginx", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways),
	}
	for _, tt := range []struct {
		name   string
		change []func(*corev1.Pod)
		d      time.Duration
		want   string
	}{
		{"unasked", nil, 5 * time.Minute, "0: Running, c running 0"},
		{"of a Job", []func(*corev1.Pod){ofJob}, time.Minute, `
0: Running, c running 0
1: Succeeded, c Completed(0) 0`},
		{
			"of a Job, never",
			[]func(*corev1.Pod){ofJob, ends("never", "0", corev1.RestartPolicyNever)},
			5 * time.Minute, "0: Running, c running 0",
		},
		{"Never, failing", []func(*corev1.Pod){ends("3s", "7", corev1.RestartPolicyNever)}, time.Minute, `
0: Running, c running 0
3: Failed, c Error(7) 0`},
		{"OnFailure, succeeding", []func(*corev1.Pod){ends("3s", "0", corev1.RestartPolicyOnFailure)}, time.Minute, `
0: Running, c running 0
3: Succeeded, c Completed(0) 0`},
		{"OnFailure, failing", []func(*corev1.Pod){ends("2s", "255", corev1.RestartPolicyOnFailure)}, 40 * time.Second, `
0: Running, c running 0
2: Running, c running 1
4: Running, c CrashLoopBackOff 1
14: Running, c running 2
16: Running, c CrashLoopBackOff 2
36: Running, c running 3
38: Running, c CrashLoopBackOff 3`},
		{"Always, up to the longest back-off", []func(*corev1.Pod){ends("0s", "0", "")}, 20 * time.Minute, `
0: Running, c CrashLoopBackOff 1
10: Running, c CrashLoopBackOff 2
30: Running, c CrashLoopBackOff 3
70: Running, c CrashLoopBackOff 4
150: Running, c CrashLoopBackOff 5
310: Running, c CrashLoopBackOff 6
610: Running, c CrashLoopBackOff 7
910: Running, c CrashLoopBackOff 8`},
		{"long runs have no back-off", []func(*corev1.Pod){ends("10m1s", "1", "")}, 21 * time.Minute, `
0: Running, c running 0
601: Running, c running 1
1202: Running, c running 2`},
		{"a sidecar ends after the others", []func(*corev1.Pod){
			ends("2s", "1", corev1.RestartPolicyNever),
			func(p *corev1.Pod) {
				p.Spec.InitContainers = []corev1.Container{{Name: "init", Image: "nginx"}, sidecar}
			},
		}, time.Minute, `
0: Running, init Completed(0) 0, side running 0, c running 0
2: Failed, init Completed(0) 0, side Completed(0) 0, c Error(1) 0`},
		{"containers with policies of their own", []func(*corev1.Pod){
			ends("2s", "4", corev1.RestartPolicyNever),
			func(p *corev1.Pod) {
				p.Spec.Containers = append(p.Spec.Containers, corev1.Container{
					Name: "again", Image: "nginx", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyNever),
					RestartPolicyRules: []corev1.ContainerRestartRule{{
						Action: corev1.ContainerRestartRuleActionRestart,
						ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{
							Operator: corev1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{3, 4},
						},
					}},
				})
			},
		}, 10 * time.Second, `
0: Running, c running 0, again running 0
2: Running, c Error(4) 0, again running 1
4: Running, c Error(4) 0, again CrashLoopBackOff 1`},
		{"past its deadline", []func(*corev1.Pod){func(p *corev1.Pod) {
			p.Spec.ActiveDeadlineSeconds = ptr.To[int64](5)
		}}, time.Minute, `
0: Running, c running 0
5: Failed DeadlineExceeded, c Error(137) 0`},
		{
			"an end that is no duration",
			[]func(*corev1.Pod){ends("3", "0", "")},
			time.Minute,
			"0: Pending, c CreateContainerConfigError 0",
		},
		{
			"a negative one",
			[]func(*corev1.Pod){ends("-3s", "0", "")},
			time.Minute,
			"0: Pending, c CreateContainerConfigError 0",
		},
		{
			"an exit code that is none",
			[]func(*corev1.Pod){ends("3s", "256", "")},
			time.Minute,
			"0: Pending, c CreateContainerConfigError 0",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inCluster(t, kubelet.Options{}, func(c *cluster) {
				c.create("a", "nginx", tt.change...)
				if got := c.life("a", tt.d); got != strings.TrimPrefix(tt.want, "\n") {
					t.Errorf("got\n%s\nwant\n%s", got, strings.TrimPrefix(tt.want, "\n"))
				}
			})
		})
	}
}

// A wrong annotation is named in the status, and the pod starts when it is corrected.
func TestEndingIsCorrected(t *testing.T) {
	inCluster(t, kubelet.Options{}, func(c *cluster) {
		c.create("a", "nginx", ends("soon", "0", corev1.RestartPolicyNever))
		after(0)
		const want = `annotation kubelet.flyball.dev/ends-after: "soon" is neither a duration, such as 30s, nor never`
		if w := c.pod("a").Status.ContainerStatuses[0].State.Waiting; w == nil || w.Message != want {
			t.Errorf("the container waits for %+v", w)
		}
		patch := []byte(`{"metadata":{"annotations":{"kubelet.flyball.dev/ends-after":"1s"}}}`)
		if _, err := c.client.CoreV1().Pods("default").Patch(c.ctx, "a", types.MergePatchType, patch,
			metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		if got := c.life("a", 10*time.Second); got != "0: Running, c running 0\n1: Succeeded, c Completed(0) 0" {
			t.Error(got)
		}
	})
}

// Source: k8s.io/kubernetes v1.37.2 pkg/kubelet/status/generate.go
func TestStatusOfEndedPods(t *testing.T) {
	for _, tt := range []struct {
		name, code, initialized, ready string
	}{
		{"succeeded", "0", "PodCompleted", "PodCompleted"},
		{"failed", "1", "", "PodFailed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inCluster(t, kubelet.Options{Message: "said"}, func(c *cluster) {
				begun := time.Now()
				c.create("a", "nginx", ends("90s", tt.code, corev1.RestartPolicyNever))
				after(time.Hour)
				p := c.pod("a")
				var conditions []string
				for _, cond := range p.Status.Conditions {
					conditions = append(conditions, fmt.Sprintf("%s=%s %s%s@%v", cond.Type, cond.Status, cond.Reason,
						cond.Message, cond.LastTransitionTime.Sub(begun)))
				}
				if got, want := strings.Join(conditions, " "), fmt.Sprintf("PodReadyToStartContainers=False @1m30s "+
					"Initialized=True %s@0s Ready=False %s@1m30s ContainersReady=False %s@1m30s PodScheduled=True @0s",
					tt.initialized, tt.ready, tt.ready); got != want {
					t.Errorf("conditions\n%s\nwant\n%s", got, want)
				}
				cs := p.Status.ContainerStatuses[0]
				end := cs.State.Terminated
				if end == nil || end.StartedAt.Sub(begun) != 0 || end.FinishedAt.Sub(begun) != 90*time.Second ||
					end.ContainerID != cs.ContainerID || cs.Ready || *cs.Started || p.Status.Message != "said" ||
					p.Status.PodIP == "" {
					t.Errorf("status %+v", p.Status)
				}
			})
		})
	}
}

// A container that is started again has the end of its last run in its status.
func TestLastState(t *testing.T) {
	inCluster(t, kubelet.Options{}, func(c *cluster) {
		begun := time.Now()
		c.create("a", "nginx", ends("2s", "1", ""))
		after(0)
		first := c.pod("a").Status.ContainerStatuses[0].ContainerID
		after(3 * time.Second)
		cs := c.pod("a").Status.ContainerStatuses[0]
		if last := cs.LastTerminationState.Terminated; last == nil || last.ContainerID != first ||
			last.ExitCode != 1 || last.FinishedAt.Sub(begun) != 2*time.Second || cs.RestartCount != 1 ||
			cs.ContainerID == first || !cs.Ready {
			t.Errorf("running again: %+v", cs)
		}
		after(time.Second)
		cs = c.pod("a").Status.ContainerStatuses[0]
		want := "back-off 10s restarting failed container=c pod=a_default(" + string(c.pod("a").UID) + ")"
		if w := cs.State.Waiting; w == nil || w.Message != want || cs.Ready ||
			cs.LastTerminationState.Terminated.FinishedAt.Sub(begun) != 4*time.Second {
			t.Errorf("backed off: %+v", cs)
		}
	})
}

// A kubelet that is started in the middle of a run ends it on time.
func TestRestartInARun(t *testing.T) {
	inCluster(t, kubelet.Options{}, func(c *cluster) {
		c.create("a", "nginx", ends("1h", "0", corev1.RestartPolicyNever))
		after(30 * time.Minute)
		c.stop()
		c.start()
		after(30*time.Minute - time.Second)
		c.want("a", "Running node-1 10.244.0.1 ready")
		after(2 * time.Second)
		c.want("a", "Succeeded node-1 10.244.0.1")
	})
}

// A pod that has ended makes room for one that waits.
func TestEndedPodsTakeNoRoom(t *testing.T) {
	inCluster(t, kubelet.Options{Nodes: 1, PodsPerNode: 1}, func(c *cluster) {
		c.create("a", "nginx", ends("5s", "0", corev1.RestartPolicyNever))
		after(0)
		c.create("b", "nginx")
		after(4 * time.Second)
		c.want("b", "Pending  ")
		after(time.Second)
		c.want("b", "Running node-1 10.244.0.2 ready")
	})
}

// A controller that holds a deleted pod back learns how it ended.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/kubelet/status/status_manager.go, TerminatePod
func TestDeletedPodsEnd(t *testing.T) {
	inCluster(t, kubelet.Options{}, func(c *cluster) {
		held := func(p *corev1.Pod) { p.Finalizers = []string{"test/hold"} }
		c.create("a", "nginx", held)
		c.create("b", "nginx", held, ends("1s", "0", corev1.RestartPolicyNever))
		after(2 * time.Second)
		for _, name := range []string{"a", "b"} {
			if err := c.client.CoreV1().Pods("default").Delete(c.ctx, name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		after(time.Minute)
		for name, want := range map[string]string{"a": "Failed, c Error(137) 0", "b": "Succeeded, c Completed(0) 0"} {
			if got := told(c.pod(name)); got != want {
				t.Errorf("%s: %s, want %s", name, got, want)
			}
		}
	})
}

func TestNoScheduler(t *testing.T) {
	inCluster(t, kubelet.Options{NoScheduler: true}, func(c *cluster) {
		c.create("a", "nginx")
		c.create("b", "nginx", func(p *corev1.Pod) { p.Spec.NodeName = "node-2" })
		after(time.Minute)
		c.want("a", "Pending  ")
		c.want("b", "Running node-2 10.244.0.1 ready")
	})
}
