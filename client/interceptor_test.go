package client_test

import (
	"context"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/client"
)

// Call is a call of a [client.Client].
type Call struct {
	// Verb is get, list, create, update, patch, apply, delete or deleteAllOf.
	Verb string
	// SubResource is "" for the object itself.
	SubResource string
	// Object is the argument of the call: an object, a list, or a runtime.ApplyConfiguration.
	Object any
	// Key names the object; it is empty for a list.
	Key client.ObjectKey
}

func (c Call) String() string {
	words := []string{c.Verb}
	if c.SubResource != "" {
		words = append(words, c.SubResource)
	}
	if c.Key != (client.ObjectKey{}) {
		words = append(words, c.Key.String())
	}
	return strings.Join(words, " ")
}

// Func wraps a call. It may return an error instead of calling next, call it several times, or look at its result.
type Func func(ctx context.Context, call Call, next func(ctx context.Context) error) error

// intercept returns a client that passes every call of c to around.
func intercept(c client.Client, around Func) client.Client { return &intercepted{c, around} }

type intercepted struct {
	client.Client
	around Func
}

func (i *intercepted) about(ctx context.Context, verb string, obj client.Object,
	do func(context.Context) error,
) error {
	return i.around(ctx, Call{Verb: verb, Object: obj, Key: client.ObjectKeyFromObject(obj)}, do)
}

func (i *intercepted) Get(ctx context.Context, key client.ObjectKey, obj client.Object,
	opts ...client.GetOption,
) error {
	return i.around(ctx, Call{Verb: "get", Object: obj, Key: key},
		func(ctx context.Context) error { return i.Client.Get(ctx, key, obj, opts...) })
}

func (i *intercepted) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return i.around(ctx, Call{Verb: "list", Object: list},
		func(ctx context.Context) error { return i.Client.List(ctx, list, opts...) })
}

func (i *intercepted) Create(ctx context.Context, obj client.Object, opts ...client.WriteOption) error {
	return i.about(ctx, "create", obj, func(ctx context.Context) error { return i.Client.Create(ctx, obj, opts...) })
}

func (i *intercepted) Update(ctx context.Context, obj client.Object, opts ...client.WriteOption) error {
	return i.about(ctx, "update", obj, func(ctx context.Context) error { return i.Client.Update(ctx, obj, opts...) })
}

func (i *intercepted) Patch(ctx context.Context, obj client.Object, patch client.Patch,
	opts ...client.WriteOption,
) error {
	return i.about(ctx, "patch", obj,
		func(ctx context.Context) error { return i.Client.Patch(ctx, obj, patch, opts...) })
}

func (i *intercepted) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.WriteOption) error {
	return i.around(ctx, Call{Verb: "apply", Object: obj},
		func(ctx context.Context) error { return i.Client.Apply(ctx, obj, opts...) })
}

func (i *intercepted) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	return i.about(ctx, "delete", obj, func(ctx context.Context) error { return i.Client.Delete(ctx, obj, opts...) })
}

func (i *intercepted) DeleteAllOf(ctx context.Context, obj client.Object, opts ...client.DeleteAllOfOption) error {
	return i.around(ctx, Call{Verb: "deleteAllOf", Object: obj},
		func(ctx context.Context) error { return i.Client.DeleteAllOf(ctx, obj, opts...) })
}

func (i *intercepted) Status() client.SubResourceClient { return i.SubResource("status") }

func (i *intercepted) SubResource(name string) client.SubResourceClient {
	return &interceptedSub{SubResourceClient: i.Client.SubResource(name), name: name, around: i.around}
}

type interceptedSub struct {
	client.SubResourceClient
	name   string
	around Func
}

func (i *interceptedSub) about(ctx context.Context, verb string, obj client.Object,
	do func(context.Context) error,
) error {
	return i.around(ctx, Call{Verb: verb, SubResource: i.name, Object: obj, Key: client.ObjectKeyFromObject(obj)}, do)
}

func (i *interceptedSub) Get(ctx context.Context, obj, sub client.Object) error {
	return i.about(ctx, "get", obj, func(ctx context.Context) error { return i.SubResourceClient.Get(ctx, obj, sub) })
}

func (i *interceptedSub) Create(ctx context.Context, obj, sub client.Object, opts ...client.WriteOption) error {
	return i.about(ctx, "create", obj,
		func(ctx context.Context) error { return i.SubResourceClient.Create(ctx, obj, sub, opts...) })
}

func (i *interceptedSub) Update(ctx context.Context, obj client.Object, opts ...client.WriteOption) error {
	return i.about(ctx, "update", obj,
		func(ctx context.Context) error { return i.SubResourceClient.Update(ctx, obj, opts...) })
}

func (i *interceptedSub) Patch(ctx context.Context, obj client.Object, patch client.Patch,
	opts ...client.WriteOption,
) error {
	return i.about(ctx, "patch", obj,
		func(ctx context.Context) error { return i.SubResourceClient.Patch(ctx, obj, patch, opts...) })
}

func (i *interceptedSub) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.WriteOption) error {
	return i.around(ctx, Call{Verb: "apply", SubResource: i.name, Object: obj}, func(ctx context.Context) error {
		return i.SubResourceClient.Apply(ctx, obj, opts...)
	})
}

// Recording is a client that remembers its calls.
type Recording struct {
	client.Client

	mu    sync.Mutex
	calls []Call
}

// record returns a client that forwards calls to c and remembers them.
func record(c client.Client) *Recording {
	r := &Recording{}
	r.Client = intercept(c, func(ctx context.Context, call Call, next func(context.Context) error) error {
		r.mu.Lock()
		r.calls = append(r.calls, call)
		r.mu.Unlock()
		return next(ctx)
	})
	return r
}

// Calls returns the calls so far, in the order in which they began.
func (r *Recording) Calls() []Call {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.calls)
}

// Writes returns the calls that are writes.
func (r *Recording) Writes() []Call {
	return slices.DeleteFunc(r.Calls(), func(c Call) bool { return c.Verb == "get" || c.Verb == "list" })
}
