package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/conditions"
	"github.com/flyball-dev/flyball/examples/operators/internal/optest"
	"github.com/flyball-dev/flyball/examples/operators/projects/api"
	"github.com/flyball-dev/flyball/examples/operators/projects/api/infrastructure"
	"github.com/flyball-dev/flyball/internal/kit"
	"github.com/flyball-dev/flyball/localapi"
)

// TestMain is the operator itself in a child process.
func TestMain(m *testing.M) { optest.Main(m, run, "--poll=100ms", "--purge-timeout=1h") }

// TestKill kills the operator at a random moment of each round, again and again in some, and starts it anew. In a
// round Projects come and go; what there has to be afterwards is known, whatever happened in between. FLYBALL_KILLS
// is how many rounds.
func TestKill(t *testing.T) {
	kit.Guard(t)
	rounds, random := optest.Rounds(t, "FLYBALL_KILLS", 3), rand.New(rand.NewPCG(optest.Seed(t), 0))
	s := newSide(t)
	kills, midway := 0, 0
	wanted := map[string]bool{}
	for range rounds {
		p := optest.Start(t, s.address)
		s.change(wanted, random)
		want := describeWanted(wanted)
		for again := true; again; again = random.IntN(3) == 0 {
			// the process takes some time to come up
			p.KillAfter(time.Duration(random.Int64N(int64(800*time.Millisecond))), func() {})
			if s.describe() != want {
				midway++
			}
			kills++
			p = optest.Start(t, s.address)
		}
		optest.Await(t, p, want, s.describe)
		p.Kill()
	}
	t.Logf("%d kills in %d rounds, %d of them before the work was done; the last state:\n%s", kills, rounds, midway,
		s.describe())
}

// side is an API server with Projects and a host of their control planes, on one socket.
type side struct {
	*optest.World
	host    *host
	address string
}

func newSide(t *testing.T) *side {
	t.Helper()
	server := localapi.NewTestWith(t, localapi.Options{NoKubernetesService: true})
	operator.Install(t, server.RESTConfig())
	s := &side{World: optest.NewWorld(t, newClient(t, server.RESTConfig())), host: newHost()}
	stop := s.Go(func(ctx context.Context) error { return s.host.Run(ctx, server.RESTConfig()) })
	t.Cleanup(func() {
		stop()
		s.Must(s.host.Close())
	})
	s.address = optest.Serve(t, s.host.Handler(server.Handler()))
	return s
}

// change deletes some Projects, after something was put into them, and creates others.
func (s *side) change(wanted map[string]bool, r *rand.Rand) {
	s.Helper()
	ctx := s.Context()
	for n := range 6 {
		name := fmt.Sprint("p-", n)
		p := &api.Project{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       api.ProjectSpec{OwnerRef: api.OwnerRef{Kind: "Organization", Name: "acme"}},
		}
		switch {
		case !wanted[name] && r.IntN(3) > 0:
			s.Must(s.Create(ctx, p))
			wanted[name] = true
		case wanted[name] && r.IntN(2) == 0:
			s.fill(name)
			s.Must(s.Delete(ctx, p))
			wanted[name] = false
		}
	}
}

// fill puts things into a control plane.
func (s *side) fill(name string) {
	s.Helper()
	ctx := s.Context()
	c := newClient(s.T, s.host.Server(name).RESTConfig())
	s.Must(c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}}))
	for i := range 20 {
		s.Must(
			c.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: fmt.Sprint("s-", i)}}),
		)
	}
}

// describeWanted is what describe says when all is done.
func describeWanted(wanted map[string]bool) string {
	var lines []string
	for name, is := range wanted {
		if is {
			lines = append(lines,
				fmt.Sprintf("%s: Ready Ready, finalizers [%s], its own control plane, prepared", name, api.Finalizer))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// describe is all that the operator keeps, without times, identities and versions.
func (s *side) describe() string {
	s.Helper()
	ctx := s.Context()
	var projects api.ProjectList
	var all infrastructure.ProjectControlPlaneList
	s.Must(s.List(ctx, &projects))
	s.Must(s.List(ctx, &all))
	of := map[string]string{}
	for _, plane := range all.Items {
		of[plane.Name] = plane.Labels[api.ProjectUIDLabel]
	}
	var lines []string
	for _, p := range projects.Items {
		line := p.Name + ":"
		for _, kind := range []string{api.Ready, api.ResourceCleanup} {
			if c := conditions.Get(p.Status.Conditions, kind); c != nil {
				line += " " + kind + " " + c.Reason + ","
			}
		}
		line += fmt.Sprintf(" finalizers %v,", p.Finalizers)
		if of[p.Name] == string(p.UID) {
			line += " its own control plane,"
		}
		delete(of, p.Name)
		lines = append(lines, line+" "+s.prepared(&p))
	}
	for name := range of {
		lines = append(lines, name+": a control plane without a project")
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// prepared says whether a control plane has what belongs there.
func (s *side) prepared(p *api.Project) string {
	s.Helper()
	server := s.host.Server(p.Name)
	if server == nil {
		return "not running"
	}
	c, info, n := newClient(s.T, server.RESTConfig()), &corev1.ConfigMap{}, &corev1.Namespace{}
	err := c.Get(s.Context(), client.ObjectKey{Namespace: "default", Name: "project-info"}, info)
	if err == nil {
		err = c.Get(s.Context(), client.ObjectKey{Name: "default"}, n)
	}
	switch {
	case err != nil: // or it is being closed
		return "not prepared"
	case info.Data["uid"] != string(p.UID) || n.Labels[api.ProjectNameLabel] != p.Name:
		return "prepared for another"
	}
	return "prepared"
}
