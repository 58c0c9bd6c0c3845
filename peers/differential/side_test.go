package differential

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/peers/upstream"
)

// compared are the controllers that both sides run, by their names in --controllers of either program.
var compared = []string{"deployment", "replicaset", "endpoint", "endpointslice", "garbagecollector"}

// nodeName is the one node that pods are bound to. Its kubelet is the scenario.
const nodeName = "node-1"

// side is a control plane with the compared controllers on it: the real ones or ours.
type side struct {
	name   string
	plane  *upstream.ControlPlane
	config *rest.Config
	client kubernetes.Interface
	rec    *recorder
	probe  *probe
	// managed is where the program with the compared controllers tells about itself.
	managed string
}

// startReal starts a control plane whose controllers are kube-controller-manager's.
func startReal(t *testing.T, name string) *side {
	t.Helper()
	s := startSide(t, name, append([]string{"namespace"}, compared...))
	s.managed = s.plane.ManagerURL
	return s
}

// startOurs starts a control plane whose controllers are flyball manager's; what is not compared is
// kube-controller-manager's.
func startOurs(t *testing.T, name string) *side {
	t.Helper()
	s := startSide(t, name, []string{"namespace"})
	s.managed = startManager(t, s.plane.Kubeconfig, "--leader-elect=false", "--kube-api-qps=-1", "--controllers="+
		join(compared)).url
	return s
}

func startSide(t *testing.T, name string, controllers []string) *side {
	t.Helper()
	p, err := upstream.Start(t.Context(), upstream.Options{
		Controllers: controllers, Log: os.Stderr,
		ManagerArgs: []string{"--kube-api-qps=10000", "--kube-api-burst=10000"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	config := adminConfig(t, p)
	s := &side{name: name, plane: p, config: config, client: kubernetes.NewForConfigOrDie(config)}
	s.rec = newRecorder(dynamic.NewForConfigOrDie(config))
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.rec.run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("%s: record: %v", name, err)
		}
	})
	if _, err := s.client.CoreV1().Nodes().Create(t.Context(),
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.probe = &probe{client: s.client, rec: s.rec}
	return s
}

const (
	// quietFor is the least time without a change after which a side may count as settled.
	quietFor = 200 * time.Millisecond
	// settleWithin is how long a side may take to settle.
	settleWithin = 5 * time.Minute
)

// settle waits until no controller has anything left to do.
//
// That is so when a probe, which every controller has to work on, went through all of them, their queues are empty,
// and nothing else was written meanwhile: their caches then hold everything that was there before the probe, and what
// they found in it to do was begun before the probe's end, for queues are in order, and is done. A busy machine makes
// the probe slower, so it does not make this less sure.
func (s *side) settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, settleWithin)
	defer cancel()
	for {
		began, seen := time.Now(), s.rec.changes()
		if err := s.probe.pass(ctx); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		busy, err := drained(ctx, s.managed)
		if err != nil {
			return fmt.Errorf("%s: %w; the last change was of %s", s.name, err, s.rec.lastChange())
		}
		time.Sleep(max(50*time.Millisecond, quietFor-time.Since(began)))
		if s.rec.changes() == seen && !busy {
			return nil
		}
	}
}

// play runs scenarios side by side, each in its own namespace, and returns the transcript of each by its name. In
// each round every scenario takes a step, then all wait until the side has settled, then what changed is written
// down.
func (s *side) play(ctx context.Context, scenarios []scenario) (map[string]string, error) {
	var envs []*env
	for _, sc := range scenarios {
		envs = append(envs, newEnv(s, sc))
	}
	if err := inParallel(envs, func(e *env) error { return e.open(ctx) }); err != nil {
		return nil, err
	}
	began, rounds := time.Now(), 0
	for active := envs; len(active) > 0; rounds++ {
		s.rec.nextSecond()
		if err := inParallel(active, func(e *env) error { e.advance(ctx); return nil }); err != nil {
			return nil, err
		}
		if err := s.settle(ctx); err != nil {
			return nil, err
		}
		var left []*env
		for _, e := range active {
			e.note()
			if !e.done() {
				left = append(left, e)
			}
		}
		active = left
	}
	fmt.Fprintf(os.Stderr, "%s: %d scenarios in %d rounds, %d passes of the probe, %s\n", s.name, len(scenarios),
		rounds, s.probe.passes, time.Since(began).Round(time.Second))
	if err := s.rec.eventsQuiet(ctx); err != nil {
		return nil, err
	}
	transcripts := map[string]string{}
	for _, e := range envs {
		transcripts[e.scenario.name] = e.close()
	}
	return transcripts, nil
}

// inParallel calls f for each, eight at a time.
func inParallel[T any](all []T, f func(T) error) error {
	var wg sync.WaitGroup
	errs := make([]error, len(all))
	slots := make(chan struct{}, 8)
	for i, one := range all {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			errs[i] = f(one)
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
