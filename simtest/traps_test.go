package simtest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
)

// looping builds a program that calls act every so often, after it has created a ConfigMap.
func looping(every time.Duration, act func(ctx context.Context, c client.Client) error) func(*Env) (Program, error) {
	return func(e *Env) (Program, error) {
		c, err := client.New(e.Config(), client.Options{})
		return ProgramFunc(func(ctx context.Context) error {
			if err := client.IgnoreAlreadyExists(c.Create(ctx, sources()[0])); err != nil {
				return err
			}
			for ctx.Err() == nil {
				if err := act(ctx, c); err != nil {
					return err
				}
				select {
				case <-ctx.Done():
				case <-time.After(every):
				}
			}
			return nil
		}), err
	}
}

// TestHotLoops: a program that asks in a loop is found, whether or not time passes, and although it changes nothing.
func TestHotLoops(t *testing.T) {
	read := func(ctx context.Context, c client.Client) error {
		return c.Get(ctx, client.ObjectKeyFromObject(sources()[0]), &corev1.ConfigMap{})
	}
	update := func(ctx context.Context, c client.Client) error {
		m := &corev1.ConfigMap{}
		if err := c.Get(ctx, client.ObjectKeyFromObject(sources()[0]), m); err != nil {
			return err
		}
		return c.Update(ctx, m)
	}
	event := func(ctx context.Context, c client.Client) error {
		return c.Create(ctx, &corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{Namespace: "default", GenerateName: "again-"},
			InvolvedObject: corev1.ObjectReference{Namespace: "default"},
		})
	}
	for _, test := range []struct {
		name  string
		every time.Duration
		act   func(context.Context, client.Client) error
		found bool
	}{
		{"read without pause", 0, read, true},
		{"read every 100 ms", 100 * time.Millisecond, read, true},
		{"update without pause", 0, update, true},
		{"event every 10 ms", 10 * time.Millisecond, event, true},
		{"read every 2 s", 2 * time.Second, read, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := &Scenario{Build: looping(test.every, test.act), Script: func(u *User) { u.Settle() }}
			c := &checker{t: t, s: s}
			r := c.perform(&runPlan{Seed: 1}, limits{writes: 10_000})
			found := len(r.findings) > 0 && r.findings[0].Rule == RuleRest && r.findings[0].Subject == "hot loop"
			if found != test.found || len(r.findings) > 1 || !found && r.end == nil {
				t.Errorf("findings: %v", r.findings)
			}
		})
	}
}

// lateWriter builds a program with a goroutine that outlives Run and then sends a request.
func lateWriter(after time.Duration, act func(ctx context.Context, c client.Client) error) func(*Env) (Program, error) {
	return func(e *Env) (Program, error) {
		c, err := client.New(e.Config(), client.Options{})
		return ProgramFunc(func(ctx context.Context) error {
			err := client.IgnoreAlreadyExists(c.Create(ctx, sources()[0]))
			<-ctx.Done()
			go func() {
				time.Sleep(after)
				_ = act(context.Background(), c)
			}()
			return err
		}), err
	}
}

// TestLateWrites: a write after Run has returned is found, whether or not it waits already. Reads and events are not.
func TestLateWrites(t *testing.T) {
	write := func(ctx context.Context, c client.Client) error { return c.Create(ctx, sources()[1]) }
	read := func(ctx context.Context, c client.Client) error {
		return c.Get(ctx, client.ObjectKeyFromObject(sources()[0]), &corev1.ConfigMap{})
	}
	event := func(ctx context.Context, c client.Client) error {
		return c.Create(ctx, &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "end"}})
	}
	for _, test := range []struct {
		name  string
		after time.Duration
		act   func(context.Context, client.Client) error
		found bool
	}{
		{"write at once", 0, write, true},
		{"write a second later", time.Second, write, true},
		{"read", time.Second, read, false},
		{"event", time.Second, event, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := &Scenario{Build: lateWriter(test.after, test.act), Script: func(u *User) { u.Settle() }}
			r := (&checker{t: t, s: s}).perform(&runPlan{Seed: 1}, limits{cold: true})
			late := func(f Finding) bool { return f.Rule == RuleStop && f.Subject == "late write" }
			if found := slices.ContainsFunc(r.findings, late); found != test.found {
				t.Errorf("findings: %v", r.findings)
			}
		})
	}
}

// kept is a package-level variable that refers to a program, which is a mistake.
var kept client.Client

// TestMemory: a client that outlives its process is found.
func TestMemory(t *testing.T) {
	defer func() { kept = nil }()
	for _, keep := range []bool{true, false} {
		f, _ := Find(t, Scenario{
			Build: func(e *Env) (Program, error) {
				c, err := client.New(e.Config(), client.Options{})
				if keep {
					kept = c
				}
				return ProgramFunc(func(ctx context.Context) error {
					err := client.IgnoreAlreadyExists(c.Create(ctx, sources()[0]))
					<-ctx.Done()
					return err
				}), err
			},
			Script: func(u *User) { u.Settle() },
			Serial: true,
		}, Options{Runs: 1})
		if found := f != nil && f.Rule == RuleMemory; found != keep || !found && f != nil {
			t.Errorf("kept: %v, found: %v", keep, f)
		}
		kept = nil
	}
}

// TestTraps: what people get wrong first is told so that they know what to do.
func TestTraps(t *testing.T) {
	waits := func(ctx context.Context) error { <-ctx.Done(); return nil }
	for _, test := range []struct {
		name, want string
		rule       Rule
		s          Scenario
	}{
		{"nothing is written", "watches", RuleWrites, Scenario{
			Build: func(e *Env) (Program, error) {
				c, err := kubernetes.NewForConfig(e.Config())
				return ProgramFunc(func(ctx context.Context) error {
					_, err := c.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
					<-ctx.Done()
					return err
				}), err
			},
			Script: func(*User) {},
		}},
		{"the config is not used", "Env.Config", RuleWrites, Scenario{
			Build:  func(*Env) (Program, error) { return ProgramFunc(waits), nil },
			Script: func(*User) {},
		}},
		{"another server is asked", "ended by itself", RuleExit, Scenario{
			Build: func(*Env) (Program, error) {
				c, err := kubernetes.NewForConfig(&rest.Config{Host: "http://127.0.0.1:1"})
				return ProgramFunc(func(ctx context.Context) error {
					_, err := c.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
					return err
				}), err
			},
			Script: func(*User) {},
		}},
		{"there is no program", "no program and no error from Build", RuleExit, Scenario{
			Build:  func(*Env) (Program, error) { return nil, nil },
			Script: func(*User) {},
		}},
		{"Build fails", "build: no licence", RuleExit, Scenario{
			Build:  func(*Env) (Program, error) { return nil, errors.New("no licence") },
			Script: func(*User) {},
		}},
		{"Build runs the program", "Build has not returned", RuleStop, Scenario{
			Build: func(*Env) (Program, error) {
				select {}
			},
			Script: func(*User) {},
		}},
		{"the script fails", "step 2, create ConfigMap default/source-0", RuleScript, Scenario{
			Build: newCopier(1),
			Script: func(u *User) {
				u.Create(sources()[0])
				u.Create(sources()[0])
			},
		}},
		{"a type is not in the scheme", "Definition a, whose type is not in Scenario.Scheme", RuleScript, Scenario{
			Build: newCopier(1),
			Script: func(u *User) {
				u.Create(&apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "a"}})
			},
		}},
		{"Matches panics", "panic: no such pod", RuleMatches, Scenario{
			Build:   newCopier(1),
			Script:  func(u *User) { u.Create(sources()[0]) },
			Matches: func(*State) error { panic("no such pod") },
		}},
		{"Always panics", "panic: no such pod", RuleAlways, Scenario{
			Build:  newCopier(1),
			Script: func(u *User) { u.Create(sources()[0]) },
			Always: map[string]func(s *State) error{"pod": func(*State) error { panic("no such pod") }},
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			f, _ := Find(t, test.s, Options{Budget: time.Second})
			if f == nil || f.Rule != test.rule || !strings.Contains(f.Text, test.want) {
				t.Errorf("%v, want %q: %q", f, test.rule, test.want)
			}
		})
	}
}
