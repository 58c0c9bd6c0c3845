package informer

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/datadriven"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/informer/objects"
)

// commands is the language of the scripts in testdata/pipeline. After a command without output comes the trace of its
// effects.
var commands = map[string]func(p *pipeline, t *testing.T, args []string) string{
	// The informer.
	"run":            (*pipeline).run,
	"stop":           func(p *pipeline, _ *testing.T, _ []string) string { p.close(); return "" },
	"add-handler":    (*pipeline).addHandler, // Its name; resync=10s, max-lag=2.
	"remove-handler": (*pipeline).removeHandler,
	"hold":           (*pipeline).hold, // Makes the next call of a handler wait for release.
	"release":        (*pipeline).release,
	"fail-transform": func(p *pipeline, _ *testing.T, args []string) string { p.transformErr = args[0]; return "" },
	"dump":           (*pipeline).dump, // store, handlers, health, stats.

	// The server.
	"apply":  each(func(p *pipeline, name string) { p.server.put(name) }),
	"delete": each(func(p *pipeline, name string) { p.server.remove(name) }),
	// Like apply, but the state cannot be decoded.
	"garble":     each(func(p *pipeline, name string) { p.server.garble("default", name) }),
	"bookmark":   func(p *pipeline, _ *testing.T, args []string) string { p.server.bookmark(number(args)); return "" },
	"cut-watch":  each(func(p *pipeline, how string) { p.server.cut(scriptedError(how)) }),
	"fail-list":  each(func(p *pipeline, how string) { p.server.fail([]error{scriptedError(how)}, nil) }),
	"fail-watch": each(func(p *pipeline, how string) { p.server.fail(nil, []error{scriptedError(how)}) }),
	"compact":    func(p *pipeline, _ *testing.T, _ []string) string { p.server.compact(); return "" },
	"restore":    func(p *pipeline, _ *testing.T, args []string) string { p.server.restore(number(args)); return "" },
	// From now on, lists that may be old are old.
	"lag":       func(p *pipeline, _ *testing.T, _ []string) string { p.server.lag(); return "" },
	"elsewhere": func(p *pipeline, _ *testing.T, args []string) string { p.server.rv = number(args); return "" },
	"endless":   func(p *pipeline, _ *testing.T, _ []string) string { p.server.endless = true; return "" },
	"send":      (*pipeline).send, // An event that is not in the history: type, name, version.

	// Time.
	"advance": func(_ *pipeline, t *testing.T, args []string) string { time.Sleep(duration(t, args[0])); return "" },
}

// command executes one command of a script and returns the trace of its effects.
func (p *pipeline) command(t *testing.T, d *datadriven.TestData) string {
	f := commands[d.Cmd]
	if f == nil {
		t.Fatalf("unknown command %q", d.Cmd)
	}
	var args []string
	for _, a := range d.CmdArgs {
		args = append(args, a.String())
	}
	out := f(p, t, args)
	synctest.Wait()
	if out != "" {
		return out
	}
	return p.trace()
}

// each returns a command that runs f for each of its arguments.
func each(f func(*pipeline, string)) func(*pipeline, *testing.T, []string) string {
	return func(p *pipeline, _ *testing.T, args []string) string {
		for _, a := range args {
			f(p, a)
		}
		return ""
	}
}

// number returns the only argument; 0 if there is none.
func number(args []string) int {
	if len(args) == 0 {
		return 0
	}
	n, err := strconv.Atoi(args[0])
	if err != nil {
		panic(err)
	}
	return n
}

func duration(t *testing.T, s string) time.Duration {
	d, err := time.ParseDuration(s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func (p *pipeline) run(t *testing.T, _ []string) string {
	ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
	p.stop = cancel
	go func() {
		defer close(p.done)
		_ = p.informer.Run(ctx)
	}()
	return ""
}

func (p *pipeline) addHandler(t *testing.T, args []string) string {
	r := &recorder{}
	o := HandlerOptions{Name: args[0]}
	for _, a := range args[1:] {
		if s, ok := strings.CutPrefix(a, "resync="); ok {
			o.Resync = duration(t, s)
		}
		if s, ok := strings.CutPrefix(a, "max-lag="); ok {
			o.MaxLag = number([]string{s})
		}
	}
	reg, err := p.informer.AddHandler(r.handler(), o)
	if err != nil {
		return "error: " + err.Error() + "\n"
	}
	r.reg = reg
	p.handlers[args[0]] = r
	return ""
}

func (p *pipeline) removeHandler(t *testing.T, args []string) string {
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := p.informer.RemoveHandler(ctx, p.handlers[args[0]].reg); err != nil {
		return "error: " + err.Error() + "\n"
	}
	return ""
}

func (p *pipeline) hold(_ *testing.T, args []string) string {
	p.handlers[args[0]].hold()
	return ""
}

func (p *pipeline) release(_ *testing.T, args []string) string {
	p.handlers[args[0]].release()
	return ""
}

func (p *pipeline) send(_ *testing.T, args []string) string {
	obj := &metav1.PartialObjectMetadata{}
	obj.Namespace, obj.Name, obj.ResourceVersion = "default", args[1], args[2]
	if old := p.server.objects[Key(obj)]; old != nil {
		obj.UID = old.UID
	}
	p.server.inject(listwatch.Event[object]{Type: listwatch.EventType(args[0]), Object: obj, ResourceVersion: args[2]})
	return ""
}

// scriptedError returns the error with that name.
func scriptedError(name string) error {
	pods := schema.GroupResource{Resource: "pods"}
	switch name {
	case "ok":
		return nil
	case "eof":
		return errClosed
	case "422":
		return apierrors.NewInvalid(schema.GroupKind{Kind: "ListOptions"}, "", nil)
	case "410":
		return errExpired
	case "429":
		return apierrors.NewTooManyRequests("slow down", 7)
	case "500":
		return apierrors.NewInternalError(fmt.Errorf("etcd is not there"))
	case "401":
		return apierrors.NewUnauthorized("the token has expired")
	case "403":
		return apierrors.NewForbidden(pods, "",
			fmt.Errorf(`User "x" cannot list resource "pods" in API group "" at the cluster scope`))
	case "too-large":
		return errTooLarge()
	case "decode":
		return &objects.DecodeError{What: "watch event", Err: fmt.Errorf("garbage")}
	default:
		return fmt.Errorf("connection %s", name)
	}
}
