package run

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// TestStandings holds objects against the rules of kstatus.
//
// Source: sigs.k8s.io/cli-utils pkg/kstatus/status/generic.go and core.go.
func TestStandings(t *testing.T) {
	const deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a, generation: 2}\nspec: {replicas: " +
		"2, " +
		"progressDeadlineSeconds: 600}\n"
	const replicas = "observedGeneration: 2, replicas: 2, updatedReplicas: 2, availableReplicas: 2, readyReplicas: 2"
	const progressing = "{type: Progressing, status: 'True', reason: NewReplicaSetAvailable}"
	const available = "{type: Available, status: 'True'}"
	const set = "apiVersion: apps/v1\nkind: ReplicaSet\nmetadata: {name: a}\nspec: {replicas: 2}\n"
	const pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n"
	const custom = "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a, generation: 2}\n"
	const definition = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a}\n"
	created := "apiVersion: v1\nkind: Pod\nmetadata: {name: a, creationTimestamp: '" +
		time.Now().Add(time.Hour).UTC().Format(time.RFC3339) + "'}\n"
	const unschedulable = "status: {phase: Pending, conditions: [{type: PodScheduled, status: 'False', reason: " +
		"Unschedulable}]}"
	for _, c := range []struct {
		object string
		want   standing
		why    string
	}{
		{"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}", current, ""},
		{
			"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, deletionTimestamp: '2026-01-01T00:00:00Z'}",
			terminating, "deleted",
		},
		{custom, current, ""},
		{custom + "status: {observedGeneration: 1}", inProgress, "generation 2 is not observed"},
		{
			custom + "status: {conditions: [{type: Reconciling, status: 'True', reason: Busy, message: wait}]}",
			inProgress, "Reconciling=True (Busy): wait",
		},
		{
			custom + "status: {conditions: [{type: Stalled, status: 'True'}, {type: Ready, status: 'True'}]}", failed,
			"Stalled=True",
		},
		{
			custom + "status: {observedGeneration: 2, conditions: [{type: Ready, status: 'False', reason: Nope}]}",
			inProgress, "Ready=False (Nope)",
		},
		{custom + "status: {conditions: [{type: Ready, status: Unknown}]}", inProgress, "Ready=Unknown"},
		{custom + "status: {conditions: [{type: Ready, status: 'True'}]}", current, ""},

		{deployment, inProgress, "0 of 2 pods are there"},
		{deployment + "status: {replicas: 2, updatedReplicas: 1}", inProgress, "1 of 2 pods are updated"},
		{deployment + "status: {replicas: 3, updatedReplicas: 2}", inProgress, "1 pods are to be deleted"},
		{
			deployment + "status: {replicas: 2, updatedReplicas: 2, availableReplicas: 1}", inProgress,
			"1 of 2 pods are available",
		},
		{
			deployment + "status: {replicas: 2, updatedReplicas: 2, availableReplicas: 2, readyReplicas: 1}",
			inProgress, "1 of 2 pods are ready",
		},
		{
			deployment + "status: {" + replicas + ", conditions: [" + available + "]}", inProgress,
			"replica set is not available",
		},
		{
			deployment + "status: {" + replicas + ", conditions: [" + progressing + "]}", inProgress,
			"it is not available",
		},
		{deployment + "status: {" + replicas + ", conditions: [" + progressing + ", " + available + "]}", current, ""},
		{
			deployment + "status: {conditions: " +
				"[{type: Progressing, status: 'False', reason: ProgressDeadlineExceeded}]}",
			failed, "ProgressDeadlineExceeded",
		},

		{set, inProgress, "0 of 2 pods are labelled"},
		{
			set + "status: {replicas: 2, fullyLabeledReplicas: 2, availableReplicas: 1}", inProgress,
			"1 of 2 pods are available",
		},
		{
			set + "status: {replicas: 3, fullyLabeledReplicas: 3, availableReplicas: 2, readyReplicas: 2}", inProgress,
			"1 pods are to be deleted",
		},
		{set + "status: {replicas: 2, fullyLabeledReplicas: 2, availableReplicas: 2, readyReplicas: 2}", current, ""},
		{set + "status: {conditions: [{type: ReplicaFailure, status: 'True', message: quota}]}", inProgress, "quota"},

		{pod, inProgress, "no kubelet"},
		{pod + "status: {phase: Pending}", inProgress, "pending"},
		{pod + unschedulable, failed, "Unschedulable"},
		{created + unschedulable, inProgress, "not scheduled"},
		{pod + "status: {phase: Running}", inProgress, "not ready"},
		{pod + "status: {phase: Running, conditions: [{type: Ready, status: 'True'}]}", current, ""},
		{
			pod + "status: {phase: Running, containerStatuses: [{name: web, state: {waiting: {reason: " +
				"CrashLoopBackOff}}}]}", failed, "crash: web",
		},
		{pod + "status: {phase: Succeeded}", current, ""},
		{pod + "status: {phase: Failed}", current, ""},

		{"apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {type: LoadBalancer}", inProgress, "cluster IP"},
		{
			"apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {type: LoadBalancer, clusterIP: 10.0.0.1}",
			current, "",
		},
		{definition, inProgress, "not established"},
		{definition + "status: {conditions: [{type: NamesAccepted, status: 'False', reason: Taken}]}", failed, "Taken"},
		{
			definition + "status: {conditions: [{type: Established, status: 'False', reason: Installing}]}", inProgress,
			"not established",
		},
		{definition + "status: {conditions: [{type: Established, status: 'True'}]}", current, ""},
	} {
		var o unstructured.Unstructured
		text, err := yaml.YAMLToJSON([]byte(c.object))
		if err == nil {
			err = o.UnmarshalJSON(text)
		}
		if err != nil {
			t.Fatalf("%s: %v", c.object, err)
		}
		if got, why := standingOf(&o); got != c.want || !strings.Contains(why, c.why) {
			t.Errorf("%s\nis %s (%s), want %s (%s)", c.object, got, why, c.want, c.why)
		}
	}
}
