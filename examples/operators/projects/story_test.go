package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/conditions"
	"github.com/flyball-dev/flyball/examples/operators/internal/optest"
	"github.com/flyball-dev/flyball/examples/operators/projects/api"
	"github.com/flyball-dev/flyball/examples/operators/projects/controller"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/auth"
	"github.com/flyball-dev/flyball/manager/ctrl"
	"github.com/flyball-dev/flyball/multicluster"
)

// story is an API server with Projects, a host of their control planes and the operator, all in this process, and the
// means to change and print them.
type story struct {
	client.Client
	*optest.Teller
	ctx    context.Context
	server *localapi.Server
	host   *host
	op     *controller.Operator
}

func TestStory(t *testing.T) {
	optest.Story(t, 13, func(t *testing.T, teller *optest.Teller) (err error) {
		ctx := klog.NewContext(t.Context(), klog.Logger{})
		server := localapi.NewTestWith(t, localapi.Options{RBAC: true})
		s := &story{Teller: teller, ctx: ctx, server: server.Server, host: newHost()}
		defer func() { err = errors.Join(err, s.host.Close()) }()
		s.Client = newClient(t, server.RESTConfig())
		operator.Install(t, server.RESTConfig())
		config := rest.CopyConfig(server.RESTConfigFor(auth.ServiceAccount(operator.Namespace, operator.Name)))
		config.Wrap(s.host.Wrap)
		s.op, err = controller.New(config, ctrl.Options{},
			controller.Options{Poll: time.Second, PurgeTimeout: 6 * time.Second, RequestTimeout: 2 * time.Second})
		if err != nil {
			return err
		}
		host := func(ctx context.Context) error { return s.host.Run(ctx, server.RESTConfig()) }
		return s.Tell(ctx,
			"that one operator saw to in the API servers of four projects, as the service account of its manifests.",
			s.play, host, s.op.Run)
	})
}

// wait polls until so returns true.
func (s *story) wait(what string, so func() bool) error {
	_, err := optest.Wait(s.ctx, what, 30*time.Second, func() (bool, string, error) { return so(), "", nil })
	return err
}

func (s *story) play() error {
	for _, act := range []func() error{s.provision, s.work, s.silence, s.purge, s.giveUp, s.anew, s.idle} {
		if err := act(); err != nil {
			return err
		}
	}
	return nil
}

func (s *story) create(names ...string) error {
	for _, name := range names {
		p := &api.Project{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       api.ProjectSpec{OwnerRef: api.OwnerRef{Kind: "Organization", Name: "acme"}},
		}
		if err := s.Create(s.ctx, p); err != nil {
			return err
		}
	}
	return nil
}

func (s *story) remove(name string) error {
	return s.Delete(s.ctx, &api.Project{ObjectMeta: metav1.ObjectMeta{Name: name}})
}

func (s *story) live(names ...string) error {
	return s.wait(strings.Join(names, ", ")+" are in the fleet", func() bool {
		return !slices.ContainsFunc(names, func(name string) bool {
			status, err := s.op.Fleet.Status(name)
			return err != nil || status.State != multicluster.Live
		})
	})
}

func (s *story) gone(name string) error {
	return s.wait("the project "+name+" is gone", func() bool {
		return apierrors.IsNotFound(s.Get(s.ctx, client.ObjectKey{Name: name}, &api.Project{})) &&
			s.host.Server(name) == nil
	})
}

// in returns a client of a project's control plane.
func (s *story) in(name string) (client.Client, error) {
	server := s.host.Server(name)
	if server == nil {
		return nil, fmt.Errorf("there is no control plane of %s", name)
	}
	return client.New(server.RESTConfig(), client.Options{Scheme: s.Scheme()})
}

func (s *story) provision() error {
	s.Say("Four projects are created: shop, blog, lab and depot. Each asks for an API server of its own.")
	begin := time.Now()
	if err := s.create("shop", "blog", "lab", "depot"); err != nil {
		return err
	}
	if err := s.live("shop", "blog", "lab", "depot"); err != nil {
		return err
	}
	for _, c := range s.op.Fleet.Clusters() {
		s.Show("%-5s is %s, as the provider %q announced it", c.Name, c.State, c.Provider)
	}
	s.Note("after %v", time.Since(begin).Round(time.Millisecond))
	return nil
}

func (s *story) work() error {
	s.Say("The same namespace, team, is made in all of them. One controller works on all: its requests say where.")
	for _, name := range []string{"shop", "blog", "lab", "depot"} {
		c, err := s.in(name)
		if err != nil {
			return err
		}
		if err := c.Create(s.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}}); err != nil {
			return err
		}
		n := &corev1.Namespace{}
		if err := s.wait("the namespace is labelled", func() bool {
			return c.Get(s.ctx, client.ObjectKey{Name: "team"}, n) == nil && n.Labels[api.ProjectNameLabel] == name
		}); err != nil {
			return err
		}
		s.Show("%-5s team has the label %s=%s", name, api.ProjectNameLabel, n.Labels[api.ProjectNameLabel])
	}
	return nil
}

func (s *story) silence() error {
	s.Say("The API server of lab does not answer any more. Another project comes meanwhile.")
	s.host.Silence("lab", true)
	begin := time.Now()
	if err := errors.Join(s.create("quick"), s.live("quick")); err != nil {
		return err
	}
	s.Show("quick is Live after %v: lab keeps nobody", time.Since(begin).Round(time.Millisecond))
	return errors.Join(s.remove("quick"), s.gone("quick"))
}

// cleanup prints the states of the condition ResourceCleanup as they are seen, until the Project is gone.
func (s *story) cleanup(name string) error {
	last := ""
	return s.wait("the project "+name+" is gone", func() bool {
		p := &api.Project{}
		if apierrors.IsNotFound(s.Get(s.ctx, client.ObjectKey{Name: name}, p)) {
			return true
		}
		if c := conditions.Get(p.Status.Conditions, api.ResourceCleanup); c != nil {
			if now := fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message); now != last {
				last = now
				s.Note("ResourceCleanup %s", now)
			}
		}
		return false
	})
}

func (s *story) purge() error {
	s.Say("shop is deleted, with 100 secrets in it and a ConfigMap with a finalizer that nobody takes off.")
	c, err := s.in("shop")
	if err != nil {
		return err
	}
	for i := range 100 {
		if err := c.Create(s.ctx,
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: fmt.Sprint("s-", i)}}); err != nil {
			return err
		}
	}
	held := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "held", Finalizers: []string{"example.com/hold"}},
	}
	if err := errors.Join(c.Create(s.ctx, held), s.remove("shop"), s.cleanup("shop"), s.gone("shop")); err != nil {
		return err
	}
	s.Show("shop is gone, and so is its API server")
	return nil
}

func (s *story) giveUp() error {
	s.Say("lab, which still does not answer, is deleted as well.")
	if err := errors.Join(s.remove("lab"), s.cleanup("lab"), s.gone("lab")); err != nil {
		return err
	}
	s.Show("lab is gone: its contents could not be cleared away, and an event says so")
	s.host.Silence("lab", false)
	return nil
}

func (s *story) anew() error {
	s.Say("depot is deleted, and made anew under its name.")
	old, err := s.op.Fleet.GetCluster(s.ctx, "depot")
	if err != nil {
		return err
	}
	if err := errors.Join(s.remove("depot"), s.gone("depot"), s.create("depot"), s.live("depot")); err != nil {
		return err
	}
	now, err := s.op.Fleet.GetCluster(s.ctx, "depot")
	if err != nil {
		return err
	}
	s.Show("depot was %s and is %s: another cluster, of which the old one's requests never hear (%v)",
		old.Info().Identity, now.Info().Identity, old.Err())
	return nil
}

func (s *story) idle() error {
	s.Say("Now there is nothing to do.")
	return s.Idle(2*time.Second, s.server.Audit()) // until writes under way have arrived
}
