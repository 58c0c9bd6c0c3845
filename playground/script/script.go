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
	"go.starlark.net/starlark"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	known := functions()
	var globals starlark.StringDict
	err := bounded(func(thread *starlark.Thread) error {
		tree, err := parse(source)
		if err != nil {
			return err
		}
		program, err := starlark.FileProgram(tree, known.Has)
		if err != nil {
			return err
		}
		globals, err = program.Init(thread, known)
		globals.Freeze()
		return err
	})
	if err != nil {
		return nil, err
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
	// In a browser, messages come in when nothing else is to be done. A script whose writes cause its next run would
	// leave no such moment, and could not be removed.
	time.Sleep(time.Millisecond)
	return bounded(func(thread *starlark.Thread) error {
		thread.Print = func(_ *starlark.Thread, text string) {
			klog.FromContext(ctx).Info("The script prints", "text", text)
		}
		thread.SetLocal(sessionKey, session{ctx, cl})
		defer context.AfterFunc(ctx, func() { thread.Cancel("the controller ends") })()
		_, err := starlark.Call(thread, c.reconcile, starlark.Tuple{
			starlark.String(r.Namespace), starlark.String(r.Name),
		}, nil)
		return err
	})
}

// builtin is what a function does that a script may call. It has the object that the arguments name or are, and returns
// its result as a value of JSON.
type builtin = func(session, *unstructured.Unstructured) (any, error)

// arguments reads the arguments of a function.
type arguments = func(*starlark.Thread, string, starlark.Tuple, []starlark.Tuple) (*unstructured.Unstructured, error)

// functions returns the functions that a script may call.
func functions() starlark.StringDict {
	known := starlark.StringDict{
		"range": starlark.NewBuiltin("range", ranged), productName: starlark.NewBuiltin(productName, times),
	}
	add := func(name string, read arguments, do builtin) {
		known[name] = starlark.NewBuiltin(name, func(
			thread *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, more []starlark.Tuple,
		) (starlark.Value, error) {
			s, ok := thread.Local(sessionKey).(session)
			if !ok { // What is outside of the functions of a script has none.
				return nil, errors.New("the cluster can be used in reconcile only")
			}
			o, err := read(thread, name, args, more)
			if err != nil {
				return nil, err
			}
			result, err := do(s, o)
			if err != nil {
				return nil, err
			}
			text, err := json.Marshal(result)
			if err != nil {
				return nil, err
			}
			decode := starlarkjson.Module.Members["decode"]
			return starlark.Call(thread, decode, starlark.Tuple{starlark.String(text)}, nil)
		})
	}
	add("get", named, func(s session, o *unstructured.Unstructured) (any, error) {
		err := s.client.Get(s.ctx, client.ObjectKeyFromObject(o), o)
		if apierrors.IsNotFound(err) {
			return nil, nil //nolint:nilnil // None is the answer.
		}
		return o.Object, err
	})
	add("list", named, func(s session, o *unstructured.Unstructured) (any, error) {
		all := &unstructured.UnstructuredList{}
		of := o.GroupVersionKind()
		all.SetGroupVersionKind(of.GroupVersion().WithKind(of.Kind + "List"))
		err := s.client.List(s.ctx, all, client.InNamespace(o.GetNamespace()))
		items := []any{}
		for _, item := range all.Items {
			items = append(items, item.Object)
		}
		return items, err
	})
	add("create", declared, func(s session, o *unstructured.Unstructured) (any, error) {
		return o.Object, s.client.Create(s.ctx, o)
	})
	add("update", declared, func(s session, o *unstructured.Unstructured) (any, error) {
		return o.Object, s.client.Update(s.ctx, o)
	})
	add("delete", named, func(s session, o *unstructured.Unstructured) (any, error) {
		return nil, client.IgnoreNotFound(s.client.Delete(s.ctx, o))
	})
	return known
}

// named reads the arguments (kind, namespace, name).
func named(_ *starlark.Thread, function string, args starlark.Tuple, more []starlark.Tuple) (
	*unstructured.Unstructured, error,
) {
	var of, namespace, name string
	err := starlark.UnpackArgs(function, args, more, "kind", &of, "namespace", &namespace, "name?", &name)
	if err != nil {
		return nil, err
	}
	found, err := kind(of)
	o := object(found)
	o.SetNamespace(namespace)
	o.SetName(name)
	return o, err
}

// declared reads the arguments (object, owner=None).
func declared(thread *starlark.Thread, function string, args starlark.Tuple, more []starlark.Tuple) (
	*unstructured.Unstructured, error,
) {
	var value, by starlark.Value = nil, starlark.None
	if err := starlark.UnpackArgs(function, args, more, "object", &value, "owner?", &by); err != nil {
		return nil, err
	}
	o, err := fromScript(thread, value)
	if err != nil || by == starlark.None {
		return o, err
	}
	owner, err := fromScript(thread, by)
	if err == nil {
		o.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(owner, owner.GroupVersionKind())})
	}
	return o, err
}

// fromScript returns the object that a value of a script is.
func fromScript(thread *starlark.Thread, value starlark.Value) (*unstructured.Unstructured, error) {
	o := &unstructured.Unstructured{}
	if _, ok := value.(*starlark.Dict); !ok {
		return o, fmt.Errorf("an object is a dict, not a %s", value.Type())
	}
	text, err := starlark.Call(thread, starlarkjson.Module.Members["encode"], starlark.Tuple{value}, nil)
	if err != nil {
		return o, err
	}
	encoded, _ := starlark.AsString(text)
	return o, o.UnmarshalJSON([]byte(encoded))
}
