package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/conditions"
	"github.com/flyball-dev/flyball/client/controllerutil"
	"github.com/flyball-dev/flyball/examples/operators/internal/optest"
	"github.com/flyball-dev/flyball/examples/operators/ipam/controller"
	"github.com/flyball-dev/flyball/examples/operators/ipam/multus"
	"github.com/flyball-dev/flyball/examples/operators/ipam/v1alpha1"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/auth"
	"github.com/flyball-dev/flyball/localapi/cluster"
	"github.com/flyball-dev/flyball/manager/ctrl"
)

const namespace = "default"

// story is a cluster in this process on which the operator runs, and the means to change and print it.
type story struct {
	client.Client
	*optest.Teller
	ctx    context.Context
	server *localapi.Server
}

func TestStory(t *testing.T) {
	optest.Story(t, 12, func(t *testing.T, teller *optest.Teller) (err error) {
		ctx := klog.NewContext(t.Context(), klog.Logger{})
		server := localapi.NewTestWith(t, localapi.Options{RBAC: true, NoKubernetesService: true})
		s := &story{Client: newClient(t, server.RESTConfig()), Teller: teller, ctx: ctx, server: server.Server}
		operator.Install(t, server.RESTConfig())
		collector, err := cluster.New(server.RESTConfig(), cluster.Options{NoKubelet: true})
		if err != nil {
			return err
		}
		return s.Tell(ctx,
			"that the operator saw to, as the service account of its manifests, and none that it wrote without need.",
			s.play, collector.Run)
	})
}

// start starts an operator with the permissions that the manifests grant.
func (s *story) start() (stop func() error, err error) {
	ctx, cancel := context.WithCancel(s.ctx)
	o := controller.Defaults()
	o.ShowFor = 2 * time.Second
	mgr, err := controller.New(ctx, s.server.RESTConfigFor(auth.ServiceAccount(operator.Namespace, operator.Name)),
		ctrl.Options{}, o)
	if err != nil {
		cancel()
		return nil, err
	}
	done := make(chan error, 1)
	go func() { done <- mgr.Run(ctx) }()
	return func() error { cancel(); return <-done }, nil
}

// play plays the chapters.
func (s *story) play() error {
	stop, err := s.start()
	if err != nil {
		return err
	}
	for _, chapter := range []func() error{s.orphans, s.finished, s.slices, s.full, s.nonsense} {
		if err := chapter(); err != nil {
			return errors.Join(err, stop())
		}
	}
	s.Say("The operator is stopped. Meanwhile the Pod db goes, and a node comes. It is started again.")
	err = errors.Join(stop(), s.Delete(s.ctx, pod("db", ""), client.GracePeriodSeconds(0)),
		s.Create(s.ctx, node("node-4")))
	if err != nil {
		return err
	}
	if stop, err = s.start(); err != nil {
		return err
	}
	err = errors.Join(
		s.pool("db's address is free", func(p *v1alpha1.IPPool) bool { return p.Status.UsedIPs == 0 }),
		s.sliced("node-4 waits, for there are four slices",
			func(p *v1alpha1.NodeSlicePool) bool { return isStalled(p.Status.Conditions) }),
		s.gone(), s.idle(),
	)
	return errors.Join(err, stop())
}

// orphans is about a Pod that never existed.
func (s *story) orphans() error {
	s.Say(
		"A pool of 254 addresses. The Pods web and db have one each; a third is allocated to a Pod that does not " +
			"exist.",
	)
	p := &v1alpha1.IPPool{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "10.0.0.0-24"}}
	p.Spec = v1alpha1.IPPoolSpec{Range: "10.0.0.0/24", Allocations: map[string]v1alpha1.IPAllocation{}}
	for i, name := range []string{"web", "db", "ghost"} {
		if name != "ghost" {
			if err := s.running(pod(name, "")); err != nil {
				return err
			}
		}
		p.Spec.Allocations[fmt.Sprint(i+1)] = v1alpha1.IPAllocation{
			ContainerID: "c", PodRef: namespace + "/" + name,
			IfName: "net1",
		}
	}
	if err := s.Create(s.ctx, p); err != nil {
		return err
	}
	return s.pool("ghost's is taken back", func(p *v1alpha1.IPPool) bool { return p.Status.UsedIPs == 2 })
}

// finished is about a Pod that exists, but needs no address.
func (s *story) finished() error {
	s.Say("The Pod web succeeds. It still exists.")
	web := pod("web", "")
	if err := s.Get(s.ctx, client.ObjectKeyFromObject(web), web); err != nil {
		return err
	}
	web.Status.Phase = corev1.PodSucceeded
	if err := s.Status().Update(s.ctx, web); err != nil {
		return err
	}
	return s.pool("web's is taken back", func(p *v1alpha1.IPPool) bool { return p.Status.UsedIPs == 1 })
}

func (s *story) network(config string) error {
	nad := &multus.NetworkAttachmentDefinition{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "blue"}}
	_, err := controllerutil.CreateOrUpdate(s.ctx, s, nad, func() error { nad.Spec.Config = config; return nil })
	return err
}

// blue is a network of four slices.
const blue = `{"name":"blue","ipam":{"type":"whereabouts","range":"10.1.0.0/22","node_slice_size":"/24"}}`

func (s *story) slices() error {
	s.Say("Three nodes, and a network of four slices.")
	for _, name := range []string{"node-1", "node-2", "node-3"} {
		if err := s.Create(s.ctx, node(name)); err != nil {
			return err
		}
	}
	if err := s.network(blue); err != nil {
		return err
	}
	return s.sliced("each node has a slice",
		func(p *v1alpha1.NodeSlicePool) bool { return p.Status.AssignedSlices == 3 })
}

// full is about too many nodes, and one that leaves while its addresses are in use.
func (s *story) full() error {
	s.Say("Two more nodes.")
	if err := errors.Join(s.Create(s.ctx, node("node-5")), s.Create(s.ctx, node("node-6"))); err != nil {
		return err
	}
	if err := s.sliced("there is no slice for one of them",
		func(p *v1alpha1.NodeSlicePool) bool { return isStalled(p.Status.Conditions) }); err != nil {
		return err
	}
	s.Say("node-1 is taken away. A Pod still uses an address of its slice.")
	p := &v1alpha1.IPPool{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "10.1.0.0-24-node-1"}}
	p.Spec = v1alpha1.IPPoolSpec{
		Range:       "10.1.0.0/24",
		Allocations: map[string]v1alpha1.IPAllocation{"9": {PodRef: namespace + "/late", ContainerID: "c"}},
	}
	if err := errors.Join(s.running(pod("late", "")), s.Create(s.ctx, p), s.Delete(s.ctx, node("node-1"))); err != nil {
		return err
	}
	if err := s.sliced("the slice is kept for it", func(p *v1alpha1.NodeSlicePool) bool {
		return !isStalled(p.Status.Conditions) && p.Status.Allocations[0].NodeName == "node-1"
	}); err != nil {
		return err
	}
	s.Say("The Pod goes.")
	if err := s.Delete(s.ctx, pod("late", ""), client.GracePeriodSeconds(0)); err != nil {
		return err
	}
	return s.sliced("node-6 has the slice",
		func(p *v1alpha1.NodeSlicePool) bool { return p.Status.Allocations[0].NodeName == "node-6" })
}

// nonsense is about objects that a user wrote by mistake.
func (s *story) nonsense() error {
	s.Say("Somebody breaks the network's configuration.")
	if err := s.network(`{"name":"blue",`); err != nil {
		return err
	}
	if err := s.sliced("it is said, and nobody loses a slice", func(p *v1alpha1.NodeSlicePool) bool {
		return isStalled(p.Status.Conditions) && p.Status.AssignedSlices == 4
	}); err != nil {
		return err
	}
	s.Say("It is mended.")
	if err := s.network(blue); err != nil {
		return err
	}
	return s.sliced("all is well again",
		func(p *v1alpha1.NodeSlicePool) bool { return !isStalled(p.Status.Conditions) })
}

// gone is about a network that is no longer wanted. (The garbage collector does the work.)
func (s *story) gone() error {
	s.Say("The network is deleted.")
	nad := &multus.NetworkAttachmentDefinition{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "blue"}}
	if err := s.Delete(s.ctx, nad); err != nil {
		return err
	}
	return s.Await(s.ctx, "its slices go with it", func() (bool, string, error) {
		err := s.Get(s.ctx, client.ObjectKey{Namespace: namespace, Name: "blue"}, &v1alpha1.NodeSlicePool{})
		return err != nil && client.IgnoreNotFound(err) == nil, "", client.IgnoreNotFound(err)
	})
}

// idle shows that nothing happens.
func (s *story) idle() error {
	s.Say("Nothing happens any more.")
	return s.Idle(4*time.Second, s.server.Audit()) // until the conditions no longer report what was done
}

func (s *story) pool(what string, so func(*v1alpha1.IPPool) bool) error {
	return s.Await(s.ctx, what, func() (bool, string, error) {
		var p v1alpha1.IPPool
		err := s.Get(s.ctx, client.ObjectKey{Namespace: namespace, Name: "10.0.0.0-24"}, &p)
		return so(&p),
			fmt.Sprintf("%d of %d used; %s", p.Status.UsedIPs, p.Status.TotalIPs, words(p.Status.Conditions)), err
	})
}

func (s *story) sliced(what string, so func(*v1alpha1.NodeSlicePool) bool) error {
	return s.Await(s.ctx, what, func() (bool, string, error) {
		var p v1alpha1.NodeSlicePool
		if err := s.Get(s.ctx, client.ObjectKey{Namespace: namespace, Name: "blue"}, &p); err != nil {
			return false, "there is no NodeSlicePool", client.IgnoreNotFound(err)
		}
		var holders []string
		for _, a := range p.Status.Allocations {
			holders = append(holders, a.NodeName)
		}
		return len(holders) > 0 && so(&p),
			fmt.Sprintf("%s; %s", strings.Join(holders, " "), words(p.Status.Conditions)), nil
	})
}

func isStalled(list []metav1.Condition) bool {
	return conditions.Is(list, conditions.Stalled, metav1.ConditionTrue)
}

// words returns what the conditions say.
func words(list []metav1.Condition) string {
	c := conditions.Get(list, conditions.Ready)
	if c == nil {
		return ""
	}
	return fmt.Sprintf("Ready=%s %s: %s", c.Status, c.Reason, c.Message)
}

func pod(name string, phase corev1.PodPhase) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	p.Spec.Containers = []corev1.Container{{Name: "c", Image: "c:1"}}
	p.Status.Phase = phase
	return p
}

func node(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// running creates a running Pod.
func (s *story) running(p *corev1.Pod) error {
	if err := s.Create(s.ctx, p); err != nil {
		return err
	}
	p.Status.Phase = corev1.PodRunning
	return s.Status().Update(s.ctx, p)
}
