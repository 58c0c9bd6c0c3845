package cluster

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	rtclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/peers/bench/turns"
)

// Namespace is where all objects are.
const Namespace = "default"

// Load is a script of writes: the objects come in waves, and each wave takes all steps.
type Load struct {
	// Name selects the load in commands, Title heads its table.
	Name, Title string
	// Objects is their number, Wave how many of them take a step before the next step begins, and Rate the highest
	// number of writes a second.
	Objects, Wave, Rate int
	Steps               []Step
	Systems             []System
	// Scheme has the kinds of the objects.
	Scheme *runtime.Scheme
	// Kubelet: there are pods to be started.
	Kubelet bool

	// prepare is called when the API server is there, sweep after each wave.
	prepare, sweep func(ctx context.Context, c rtclient.Client) error
	// watched are the kinds that the watcher watches, with what tells a tracker about an object.
	watched map[informer.Object]func(t *tracker, obj informer.Object, gone bool)
}

// Step is a write of one object.
type Step struct {
	// Name is in the object, so that the watcher knows it. Row is what the table calls the step.
	Name, Row string

	write func(ctx context.Context, c rtclient.Client, step, name string) error
}

// System is a program that is measured. Program is its key in [Programs].
type System struct {
	Name, Program string
	args          func(user Access) []string
}

// Access is what a program needs to be a user of the API server.
type Access struct{ Kubeconfig, URL, Token, Authority string }

// Programs has the paths of the programs: flyball, kube-controller-manager, those of loop, and self, this one.
type Programs map[string]string

// Loads are what is measured, scaled by a factor: 1 is the full size.
func Loads(scale float64) []Load {
	size := func(n int) int { return max(1, int(float64(n)*scale)) }
	return []Load{deployments(size(2_000), size(500)), widgets(size(5_000))}
}

// wave takes n objects through all steps. It appends the seconds from write to effect to took, by row.
func (l *Load) wave(
	ctx context.Context, c rtclient.Client, w *watcher, from, n int, took map[string][]float64,
) error {
	for _, step := range l.Steps {
		err := turns.Paced(ctx, n, l.Rate, func(i int) error {
			return step.write(ctx, c, step.Name, fmt.Sprintf("object-%06d", from+i))
		})
		if err != nil {
			return fmt.Errorf("%s: %w", step.Name, err)
		}
		times, err := w.await(step.Name, n)
		if err != nil {
			return err
		}
		took[step.Row] = append(took[step.Row], times...)
	}
	return l.sweep(ctx, c)
}

func nothing(context.Context, rtclient.Client) error { return nil }
