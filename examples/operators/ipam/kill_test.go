package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/controllerutil"
	"github.com/flyball-dev/flyball/examples/operators/internal/optest"
	"github.com/flyball-dev/flyball/examples/operators/ipam/controller"
	"github.com/flyball-dev/flyball/examples/operators/ipam/multus"
	"github.com/flyball-dev/flyball/examples/operators/ipam/ranges"
	"github.com/flyball-dev/flyball/examples/operators/ipam/v1alpha1"
	"github.com/flyball-dev/flyball/internal/kit"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/manager/ctrl"
)

// TestMain is the operator itself in a child process.
func TestMain(m *testing.M) { optest.Main(m, run, "--show-for=-1s", "--min-interval=-1s") }

// TestKill kills the operator at a random moment of each round, again and again in some, and starts it anew. The same
// happens to a second cluster, whose operator is left in peace: after each round both are in the same state.
// FLYBALL_KILLS is how many rounds.
func TestKill(t *testing.T) {
	kit.Guard(t)
	rounds, seed := optest.Rounds(t, "FLYBALL_KILLS", 2), optest.Seed(t)
	random := rand.New(rand.NewPCG(seed, 0))
	harmed, peaceful := newSide(t), newSide(t)
	peaceful.inProcess()
	begin, p := time.Now(), optest.Start(t, harmed.address)
	harmed.change(0, seed)
	peaceful.change(0, seed)
	want := optest.Settled(peaceful.describe)
	optest.Await(t, p, want, harmed.describe)
	up := time.Since(begin) / 2 // about what it takes a process to come up
	kills, midway := 0, 0
	for round := 1; round <= rounds; round++ {
		changes := seed + uint64(round)
		begin = time.Now()
		peaceful.change(round, changes)
		took := time.Since(begin)
		want = optest.Settled(peaceful.describe)
		p.KillAfter(time.Duration(random.Int64N(int64(took))), func() { harmed.change(round, changes) })
		for again := true; again; {
			if harmed.describe() != want {
				midway++
			}
			kills++
			p = optest.Start(t, harmed.address)
			if again = random.IntN(3) == 0; again { // while it picks up what the last one left
				p.KillAfter(up+time.Duration(random.Int64N(int64(took))), func() {})
			}
		}
		optest.Await(t, p, want, harmed.describe)
	}
	p.Kill()
	t.Logf("%d kills in %d rounds, %d of them before the work was done; the last state:\n%s", kills, rounds, midway,
		harmed.describe())
}

// side is a cluster.
type side struct {
	*optest.World
	address string
}

func newSide(t *testing.T) *side {
	t.Helper()
	server := localapi.NewTestWith(t, localapi.Options{NoKubernetesService: true})
	operator.Install(t, server.RESTConfig())
	return &side{optest.NewWorld(t, newClient(t, server.RESTConfig())), optest.Serve(t, server.Handler())}
}

// inProcess runs an operator that is left in peace.
func (s *side) inProcess() {
	s.Helper()
	o := controller.Defaults()
	o.ShowFor, o.MinInterval = -1, -1
	s.Cleanup(s.Go(func(ctx context.Context) error {
		mgr, err := controller.New(ctx, &rest.Config{Host: s.address, QPS: -1}, ctrl.Options{}, o)
		if err != nil {
			return err
		}
		return mgr.Run(ctx)
	}))
}

const killPods, killPools = 30, 3

// change does a round of changes, the same on every side: Pods end, go and come, their allocations and reservations
// with them; a pool goes or comes; a node goes or comes, or the network is cut anew.
func (s *side) change(round int, seed uint64) {
	s.Helper()
	ctx, r := s.Context(), rand.New(rand.NewPCG(seed, 1))
	if round == 0 { // nothing is harmed yet
		for n := range 4 {
			s.Must(s.Create(ctx, node(fmt.Sprint("node-", n))))
		}
	}
	for n := range killPods {
		p := pod(fmt.Sprint("pod-", n), "")
		found := s.Get(ctx, client.ObjectKeyFromObject(p), p) == nil
		switch action := r.IntN(4); {
		case !found && action < 3:
			s.Must(s.Create(ctx, p))
			p.Status.Phase = []corev1.PodPhase{corev1.PodPending, corev1.PodRunning, corev1.PodRunning}[action]
			s.Must(s.Status().Update(ctx, p))
		case found && action == 0:
			p.Status.Phase = corev1.PodSucceeded
			s.Must(s.Status().Update(ctx, p))
		case found && action == 1:
			s.Must(s.Delete(ctx, p, client.GracePeriodSeconds(0)))
		}
	}
	for n := range killPools {
		s.changePool(fmt.Sprintf("10.%d.0.0-16", n), fmt.Sprintf("10.%d.0.0/16", n), round, r)
	}
	switch round % 3 {
	case 0:
		nad := &multus.NetworkAttachmentDefinition{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "nad"}}
		_, err := controllerutil.CreateOrUpdate(ctx, s, nad, func() error {
			nad.Spec.Config = fmt.Sprintf(
				`{"name":"net","ipam":{"type":"whereabouts","range":"11.%d.0.0/16","node_slice_size":"18"}}`, round,
			)
			return nil
		})
		s.Must(err)
	case 1:
		s.Must(s.Create(ctx, node(fmt.Sprint("more-", round))))
	case 2:
		s.Must(s.Delete(ctx, node(fmt.Sprint("more-", round-1))))
	}
}

// changePool allocates addresses to Pods, whether they exist or not, as a CNI plugin that is slow; or deletes the pool.
func (s *side) changePool(name, cidr string, round int, r *rand.Rand) {
	s.Helper()
	ctx := s.Context()
	p := &v1alpha1.IPPool{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if r.IntN(6) == 0 {
		s.Must(client.IgnoreNotFound(s.Delete(ctx, p)))
		return
	}
	fresh := map[string]v1alpha1.IPAllocation{}
	for n := range 10 {
		key := fmt.Sprint(1 + round*10 + n)
		a := v1alpha1.IPAllocation{
			ContainerID: key, PodRef: fmt.Sprintf("%s/pod-%d", namespace, r.IntN(killPods+5)),
			IfName: "net1",
		}
		fresh[key] = a
		if r.IntN(2) == 0 {
			ip, _ := ranges.At(netip.MustParsePrefix(cidr), key)
			o := &v1alpha1.OverlappingRangeIPReservation{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: v1alpha1.ReservationName("", ip)},
			}
			o.Spec = v1alpha1.OverlappingRangeIPReservationSpec(a)
			s.Must(client.IgnoreAlreadyExists(s.Create(ctx, o)))
		}
	}
	for { // until a pool that is going has gone
		*p = v1alpha1.IPPool{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		err := s.Get(ctx, client.ObjectKeyFromObject(p), p)
		if err == nil && p.DeletionTimestamp != nil {
			return // It goes with what it has.
		}
		p.Spec.Range = cidr
		if p.Spec.Allocations == nil {
			p.Spec.Allocations = map[string]v1alpha1.IPAllocation{}
		}
		for key, a := range fresh {
			p.Spec.Allocations[key] = a
		}
		if err != nil {
			s.Must(client.IgnoreNotFound(err))
			s.Must(s.Create(ctx, p))
			return
		}
		if err = s.Update(ctx, p); err == nil {
			return
		}
	}
}

// describe is all that the operator keeps, without times, identities and versions.
func (s *side) describe() string {
	s.Helper()
	ctx, in := s.Context(), client.InNamespace(namespace)
	var pools v1alpha1.IPPoolList
	var reservations v1alpha1.OverlappingRangeIPReservationList
	var sliced v1alpha1.NodeSlicePoolList
	s.Must(s.List(ctx, &pools, in))
	s.Must(s.List(ctx, &reservations, in))
	s.Must(s.List(ctx, &sliced, in))
	var lines []string
	for _, p := range pools.Items {
		st := p.Status
		lines = append(lines,
			fmt.Sprintf("pool %s: %d allocations %v, finalizers %v, going %v, %d used, %d free, %d pending, %d "+
				"orphaned, %d reserved; %s",
				p.Name, len(p.Spec.Allocations), st.AllocatedIPs, p.Finalizers, p.DeletionTimestamp != nil, st.UsedIPs,
				st.FreeIPs, st.PendingPods, st.OrphanedIPs,
				st.OverlappingReservations, words(st.Conditions)))
	}
	for _, o := range reservations.Items {
		lines = append(lines, fmt.Sprintf("reservation %s: %s; %s", o.Name, o.Spec.PodRef, words(o.Status.Conditions)))
	}
	for _, p := range sliced.Items {
		lines = append(lines,
			fmt.Sprintf("slices %s: %v %v, %d owners, %d free; %s", p.Name, p.Spec, p.Status.Allocations,
				len(p.OwnerReferences), p.Status.FreeSlices, words(p.Status.Conditions)))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
