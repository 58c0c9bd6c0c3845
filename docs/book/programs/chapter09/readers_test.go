package chapter09

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	registrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/docs/book/internal/book"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/gate"
	"github.com/flyball-dev/flyball/manager/ctrl"
	"github.com/flyball-dev/flyball/manager/webhook"
	"github.com/flyball-dev/flyball/manager/webhook/admission"
	"github.com/flyball-dev/flyball/reconcile/handler"
)

// readers are the parts of a program that read by the same client.
var readers = []string{"a reconcile", "a map function", "a validator", "a runnable"}

// situation is a write of a reconcile, before the watch shows it.
type situation struct {
	name  string
	write func(ctx context.Context, c client.Client) error
	// lost: the server's answer to the write does not arrive. silent: nor does any to a read after it.
	lost, silent bool
	// want is what each reader gets.
	want [4]string
}

const (
	sees   = "with the write"
	asks   = "with the write, from the server"
	misses = "without the write"
	stale  = "`ErrStale`"
)

var situations = []situation{
	{
		name: "the answer has the object", write: create("new"),
		want: [4]string{sees, sees, sees, sees},
	},
	{
		name:  "the answer does not say what each object is now, as that of `DeleteAllOf`",
		write: deleteAll, want: [4]string{stale, asks, asks, asks},
	},
	{
		name: "the same, and the server cannot be read", write: deleteAll, silent: true,
		want: [4]string{stale, misses, misses, misses},
	},
	{
		name:  "the answer is lost, of a create with a fixed name, an apply, or a write with a precondition",
		write: create("new"), lost: true, want: [4]string{asks, misses, misses, misses},
	},
	{
		name: "the answer is lost, of a create with a generated name, or an update, patch or deletion without a " +
			"precondition",
		write: create(""), lost: true, want: [4]string{stale, misses, misses, misses},
	},
	{
		name: "a webhook refuses the write, with whatever code", write: create("refused"),
		want: [4]string{misses, misses, misses, misses},
	},
}

// create makes an object. One named "refused" is refused by a webhook.
func create(name string) func(ctx context.Context, c client.Client) error {
	return func(ctx context.Context, c client.Client) error {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, GenerateName: "new-"}}
		return c.Create(ctx, s)
	}
}

func deleteAll(ctx context.Context, c client.Client) error {
	return c.DeleteAllOf(ctx, &corev1.Secret{}, client.InNamespace("default"))
}

// TestChapter09Readers makes a table of which reader of a program gets what.
func TestChapter09Readers(t *testing.T) {
	table := strings.Builder{}
	fmt.Fprintf(&table, "| a write of this process, and the watch is late | %s |\n|---%s|\n",
		strings.Join(readers, " | "), strings.Repeat("|---", len(readers)))
	for _, s := range situations {
		got := s.read(t)
		for i, reader := range readers {
			if got[i] != s.want[i] {
				t.Errorf("%s: %s reads %s, want %s", s.name, reader, got[i], s.want[i])
			}
		}
		fmt.Fprintf(&table, "| %s | %s |\n", s.name, strings.Join(got[:], " | "))
	}
	for _, page := range []string{page, "../read-your-writes", "../webhooks"} {
		book.Block(t, page, strings.TrimSpace(table.String()))
	}
}

// program has all readers.
type program struct {
	situation
	client client.Client
	asked  atomic.Int64 // how often the server was asked for Secrets
	// The reconcile closes wrote after its write. It waits for the others to have read, then: its own read may settle
	// what they could not know. othersRead is closed by the test.
	wrote, othersRead chan struct{}
	got               chan string // One value for each read of a reader. Never closed.
}

// read reads as one of the readers, and notes what it got.
func (p *program) read(ctx context.Context) {
	before, list := p.asked.Load(), corev1.SecretList{}
	switch err := p.client.List(ctx, &list, client.InNamespace("default")); {
	case errors.Is(err, client.ErrStale):
		p.got <- stale
	case err != nil:
		p.got <- err.Error()
	case len(list.Items) == 1: // There was one before.
		p.got <- misses
	case p.asked.Load() > before:
		p.got <- asks
	default:
		p.got <- sees
	}
}

// Reconcile writes once, and reads.
func (p *program) Reconcile(ctx context.Context, key ctrl.Request) (ctrl.Result, error) {
	if key.Name != "start" || closed(p.wrote) {
		return ctrl.Result{}, nil
	}
	if err := p.client.List(ctx, &corev1.SecretList{}); err != nil { // It fills the cache.
		return ctrl.Result{}, err
	}
	time.Sleep(time.Second)
	_ = p.write(ctx, p.client)
	close(p.wrote)
	<-p.othersRead
	p.read(ctx)
	return ctrl.Result{}, nil
}

// mapped is a map function.
func (p *program) mapped(ctx context.Context, n ctrl.Object) []ctrl.Request {
	if n.GetName() == "event" {
		p.read(ctx)
	}
	return nil
}

// Handle is a validator. It refuses one Secret.
func (p *program) Handle(ctx context.Context, r admission.Request) admission.Response {
	if r.Kind.Kind == "ConfigMap" {
		p.read(ctx)
	} else if r.Name == "refused" {
		return admission.Errored(500, errors.New("no"))
	}
	return admission.Allowed("")
}

// Run is a runnable.
func (p *program) Run(ctx context.Context) error {
	<-p.wrote
	p.read(ctx)
	<-ctx.Done()
	return nil
}

func closed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// gate makes the watch of Secrets an hour late after the write, and loses what the situation says.
func (p *program) gate() gate.Gate {
	return gate.Funcs{
		OnRequest: func(_ context.Context, r *gate.Request) gate.Verdict {
			if r.Resource == "secrets" && (r.Verb == "list" || r.Verb == "get") {
				p.asked.Add(1)
				if p.silent && closed(p.wrote) {
					return gate.Verdict{Action: gate.Drop}
				}
			}
			return gate.Verdict{}
		},
		OnAnswer: func(_ context.Context, r *gate.Request, _ gate.Answer) gate.Verdict {
			if r.Resource == "secrets" && r.Mutates() && p.lost {
				return gate.Verdict{Action: gate.Drop}
			}
			return gate.Verdict{}
		},
		OnFrame: func(ctx context.Context, r *gate.Request, f gate.Frame) gate.Verdict {
			if r.Resource == "secrets" && f.Name != "" {
				select {
				case <-time.After(time.Hour):
				case <-ctx.Done():
				}
			}
			return gate.Verdict{}
		},
	}
}

// read runs a program and returns what each reader gets after the write.
func (s situation) read(t *testing.T) (got [4]string) {
	synctest.Test(t, func(t *testing.T) {
		p := &program{
			situation: s, wrote: make(chan struct{}), othersRead: make(chan struct{}), got: make(chan string),
		}
		api := localapi.NewTestWith(t, localapi.Options{Gate: p.gate()}, named("old", &corev1.Secret{}),
			named("start", &corev1.ConfigMap{}), validates("secrets", "configmaps"))
		api.HandleWebhook("default/validator", &webhook.Admission{Handler: p})
		mgr, err := ctrl.NewManager(api.RESTConfig(), ctrl.Options{})
		if err != nil {
			t.Fatal(err)
		}
		p.client = mgr.GetClient()
		if err := errors.Join(mgr.Add(p), ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).
			Watches(&corev1.Namespace{}, handler.EnqueueMapped(p.mapped)).Complete(p)); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
		ended := make(chan error)
		go func() { ended <- mgr.Run(ctx) }()
		user, err := client.New(api.RESTConfig(), client.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var created sync.WaitGroup
		create := func(obj client.Object) {
			created.Go(func() {
				if err := user.Create(ctx, obj); err != nil {
					t.Error(err)
				}
			})
		}
		got[3] = <-p.got
		create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "event"}})
		got[1] = <-p.got
		create(named("reviewed", &corev1.ConfigMap{}))
		got[2] = <-p.got
		created.Wait()
		close(p.othersRead)
		got[0] = <-p.got
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return got
}

func named[T client.Object](name string, obj T) T {
	obj.SetNamespace("default")
	obj.SetName(name)
	return obj
}

// validates has the validator asked before objects of these resources are made.
func validates(resources ...string) *registrationv1.ValidatingWebhookConfiguration {
	c := &registrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "validator"}}
	c.Webhooks = []registrationv1.ValidatingWebhook{{
		Name: "validator.example.com",
		ClientConfig: registrationv1.WebhookClientConfig{
			Service: &registrationv1.ServiceReference{Namespace: "default", Name: "validator"},
		},
		Rules: []registrationv1.RuleWithOperations{{
			Operations: []registrationv1.OperationType{registrationv1.Create},
			Rule:       registrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: resources},
		}},
		SideEffects:             ptr.To(registrationv1.SideEffectClassNone),
		AdmissionReviewVersions: []string{"v1"},
	}}
	return c
}
