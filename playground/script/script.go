package script

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	starlarkjson "go.starlark.net/lib/json"
	"go.starlark.net/resolve"
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/manager/builder"
	"github.com/flyball-dev/flyball/reconcile"
)

// Name is the name of the controller.
const Name = "yours"

// MostSteps bounds the steps of Starlark's interpreter in one reconcile, and in a script itself.
const MostSteps = 1_000_000

// file is the name of a script in positions.
const file = "controller"

// Controller is a script that can be run. It does not change.
type Controller struct {
	watches   schema.GroupVersionKind
	owns      []schema.GroupVersionKind
	reconcile starlark.Callable
}

// Compile reads a script, and runs what is outside of its functions.
//
// Errors: all of the script, with their lines.
func Compile(source string) (*Controller, error) {
	thread := &starlark.Thread{Name: file, Print: func(*starlark.Thread, string) {}}
	thread.SetMaxExecutionSteps(MostSteps)
	known := starlark.StringDict{}
	for name, call := range builtins {
		known[name] = starlark.NewBuiltin(name, call)
	}
	globals, err := starlark.ExecFileOptions(&syntax.FileOptions{}, thread, file, source, known)
	if err != nil {
		return nil, explain(thread, err)
	}
	c := &Controller{}
	c.reconcile, _ = globals["reconcile"].(starlark.Callable)
	if f, ok := c.reconcile.(*starlark.Function); !ok || f.NumParams() != 2 {
		return nil, errors.New("the script has no function reconcile(namespace, name)")
	}
	text, _ := starlark.AsString(globals["watches"])
	if c.watches, err = kind(text); err != nil {
		return nil, fmt.Errorf("watches: %w", err)
	}
	owns, _ := globals["owns"].(*starlark.List)
	for i := 0; owns != nil && i < owns.Len(); i++ {
		text, _ := starlark.AsString(owns.Index(i))
		of, err := kind(text)
		if err != nil {
			return nil, fmt.Errorf("owns: %w", err)
		}
		c.owns = append(c.owns, of)
	}
	return c, nil
}

// Kinds returns the kinds that the server must have.
func (c *Controller) Kinds() []schema.GroupVersionKind {
	return append(slices.Clone(c.owns), c.watches)
}

// kind reads "apps/v1/Deployment".
func kind(text string) (schema.GroupVersionKind, error) {
	at := strings.LastIndexByte(text, '/')
	version, err := schema.ParseGroupVersion(text[:max(at, 0)])
	if at < 0 || err != nil || at == len(text)-1 {
		return schema.GroupVersionKind{}, fmt.Errorf("%q is no kind; one is \"apps/v1/Deployment\"", text)
	}
	return version.WithKind(text[at+1:]), nil
}

// object returns an empty object of a kind.
func object(of schema.GroupVersionKind) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(of)
	return o
}

// Add adds the controller to a manager.
func (c *Controller) Add(m *manager.Manager) error {
	b := builder.ControllerManagedBy(m).Named(Name).For(object(c.watches))
	for _, of := range c.owns {
		b = b.Owns(object(of))
	}
	return b.Complete(reconcile.Func[reconcile.Request](
		func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
			return reconcile.Result{}, c.run(ctx, m.GetClient(), r)
		}))
}

// session is what the functions that a script calls need.
type session struct {
	ctx    context.Context // of the reconcile, which the thread does not outlive
	client client.Client
}

const sessionKey = "session"

// run reconciles an object.
func (c *Controller) run(ctx context.Context, cl client.Client, r reconcile.Request) error {
	thread := &starlark.Thread{Name: file, Print: func(_ *starlark.Thread, text string) {
		klog.FromContext(ctx).Info("The script prints", "text", text)
	}}
	thread.SetMaxExecutionSteps(MostSteps)
	thread.SetLocal(sessionKey, session{ctx, cl})
	defer context.AfterFunc(ctx, func() { thread.Cancel("the controller ends") })()
	// In a browser, messages come in when nothing else is to be done. A script whose writes cause its next run would
	// leave no such moment, and could not be removed.
	time.Sleep(time.Millisecond)
	_, err := starlark.Call(thread, c.reconcile, starlark.Tuple{
		starlark.String(r.Namespace), starlark.String(r.Name),
	}, nil)
	return explain(thread, err)
}

// explain puts the line of the script before an error.
func explain(thread *starlark.Thread, err error) error {
	var evaluated *starlark.EvalError
	var unread syntax.Error
	var unresolved resolve.ErrorList
	switch {
	case errors.As(err, &unread):
		return fmt.Errorf("line %d: %s", unread.Pos.Line, unread.Msg)
	case errors.As(err, &unresolved):
		return fmt.Errorf("line %d: %s", unresolved[0].Pos.Line, unresolved[0].Msg)
	case !errors.As(err, &evaluated):
		return err
	}
	line := int32(0)
	for _, frame := range evaluated.CallStack { // the innermost last
		if frame.Pos.Filename() == file {
			line = frame.Pos.Line
		}
	}
	if thread.ExecutionSteps() >= MostSteps {
		return reconcile.Terminal(fmt.Errorf("line %d: stopped after %d steps: it must come to an end", line,
			MostSteps))
	}
	return fmt.Errorf("line %d: %w", line, evaluated.Unwrap())
}

type builtin = func(*starlark.Thread, *starlark.Builtin, starlark.Tuple, []starlark.Tuple) (starlark.Value, error)

// builtins are the functions that a script may call.
var builtins = map[string]builtin{
	"get": get, "list": list, "create": create, "update": update, "delete": remove,
}

// sessionOf returns the session of a thread. What is outside of the functions of a script has none.
func sessionOf(thread *starlark.Thread) (session, error) {
	s, ok := thread.Local(sessionKey).(session)
	if !ok {
		return s, errors.New("the cluster can be used in reconcile only")
	}
	return s, nil
}

// named reads the arguments (kind, namespace, name).
func named(thread *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, more []starlark.Tuple) (
	s session, o *unstructured.Unstructured, err error,
) {
	var of, namespace, name string
	if s, err = sessionOf(thread); err != nil {
		return s, nil, err
	}
	err = starlark.UnpackArgs(b.Name(), args, more, "kind", &of, "namespace", &namespace, "name?", &name)
	if err != nil {
		return s, nil, err
	}
	found, err := kind(of)
	if err != nil {
		return s, nil, err
	}
	o = object(found)
	o.SetNamespace(namespace)
	o.SetName(name)
	return s, o, nil
}

func get(thread *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, more []starlark.Tuple) (
	starlark.Value, error,
) {
	s, o, err := named(thread, b, args, more)
	if err != nil {
		return nil, err
	}
	if err := s.client.Get(s.ctx, client.ObjectKeyFromObject(o), o); err != nil {
		return starlark.None, client.IgnoreNotFound(err)
	}
	return toScript(thread, o.Object)
}

func list(thread *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, more []starlark.Tuple) (
	starlark.Value, error,
) {
	s, o, err := named(thread, b, args, more)
	if err != nil {
		return nil, err
	}
	all := &unstructured.UnstructuredList{}
	of := o.GroupVersionKind()
	all.SetGroupVersionKind(of.GroupVersion().WithKind(of.Kind + "List"))
	if err := s.client.List(s.ctx, all, client.InNamespace(o.GetNamespace())); err != nil {
		return nil, err
	}
	items := []any{}
	for _, item := range all.Items {
		items = append(items, item.Object)
	}
	return toScript(thread, items)
}

func create(thread *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, more []starlark.Tuple) (
	starlark.Value, error,
) {
	var value, by starlark.Value
	s, err := sessionOf(thread)
	if err == nil {
		err = starlark.UnpackArgs(b.Name(), args, more, "object", &value, "owner?", &by)
	}
	if err != nil {
		return nil, err
	}
	o, err := fromScript(thread, value)
	if err != nil {
		return nil, err
	}
	if by != nil && by != starlark.None {
		owner, err := fromScript(thread, by)
		if err != nil {
			return nil, err
		}
		o.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(owner, owner.GroupVersionKind())})
	}
	if err := s.client.Create(s.ctx, o); err != nil {
		return nil, err
	}
	return toScript(thread, o.Object)
}

func update(thread *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, more []starlark.Tuple) (
	starlark.Value, error,
) {
	var value starlark.Value
	s, err := sessionOf(thread)
	if err == nil {
		err = starlark.UnpackArgs(b.Name(), args, more, "object", &value)
	}
	if err != nil {
		return nil, err
	}
	o, err := fromScript(thread, value)
	if err != nil {
		return nil, err
	}
	if err := s.client.Update(s.ctx, o); err != nil {
		return nil, err
	}
	return toScript(thread, o.Object)
}

func remove(thread *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, more []starlark.Tuple) (
	starlark.Value, error,
) {
	s, o, err := named(thread, b, args, more)
	if err != nil {
		return nil, err
	}
	return starlark.None, client.IgnoreNotFound(s.client.Delete(s.ctx, o))
}

// toScript returns the value of a script for a value of JSON.
func toScript(thread *starlark.Thread, value any) (starlark.Value, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	return starlark.Call(thread, starlarkjson.Module.Members["decode"], starlark.Tuple{starlark.String(text)}, nil)
}

// fromScript returns the object that a value of a script is.
func fromScript(thread *starlark.Thread, value starlark.Value) (*unstructured.Unstructured, error) {
	if _, ok := value.(*starlark.Dict); !ok {
		return nil, fmt.Errorf("an object is a dict, not a %s", value.Type())
	}
	text, err := starlark.Call(thread, starlarkjson.Module.Members["encode"], starlark.Tuple{value}, nil)
	if err != nil {
		return nil, err
	}
	o := &unstructured.Unstructured{}
	encoded, _ := starlark.AsString(text)
	return o, o.UnmarshalJSON([]byte(encoded))
}
