package builder

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/buildcalls"
	"github.com/flyball-dev/flyball/internal/misuse"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/manager/webhook"
	"github.com/flyball-dev/flyball/manager/webhook/admission"
	"github.com/flyball-dev/flyball/manager/webhook/conversion"
)

// WebhookBuilder collects the webhooks of one kind of objects. Its methods return the WebhookBuilder, so that calls can
// be chained. They record mistakes, and Complete returns all of them, each with its remedy.
//
// Concurrency: a WebhookBuilder must not be used by several goroutines at once.
type WebhookBuilder struct {
	manager              *manager.Manager
	kind                 schema.GroupVersionKind
	object               informer.Object // nil before For
	defaulter, validator hook
	converter            func(*runtime.Scheme) (conversion.Converter, error)
	withContext          func(context.Context, *http.Request) context.Context
	newLog               func(base klog.Logger, req *admission.Request) klog.Logger
	wrong                []error
}

// hook is a Defaulter or Validator, and where it is to be served.
type hook struct {
	given any // nil: none
	path  string
}

// WebhookManagedBy returns a builder of webhooks that the manager will serve. If an object is given, For need not be
// called.
func WebhookManagedBy(m *manager.Manager, object ...informer.Object) *WebhookBuilder {
	b := &WebhookBuilder{manager: m}
	if m == nil {
		b.misuse("WebhookManagedBy: the manager is nil; make one with manager.New")
	}
	for _, each := range object {
		b.For(each)
	}
	return b
}

func (b *WebhookBuilder) misuse(format string, args ...any) {
	b.wrong = append(b.wrong, fmt.Errorf(format, args...))
}

// For sets the kind of the objects: an empty one, like &v1.Website{}. It must be called exactly once.
func (b *WebhookBuilder) For(object informer.Object) *WebhookBuilder {
	switch {
	case misuse.IsNil(object):
		b.misuse("For: the object is nil; give an empty one, like &corev1.Pod{}")
	case b.object != nil:
		b.misuse("For was called twice, for %T and %T: build the webhooks of each kind by themselves", b.object, object)
	case b.manager != nil:
		in := buildcalls.Input{Call: "For", Object: object, KindOf: (&Builder{manager: b.manager}).kindOf}
		kind, err := in.Kind()
		if err != nil {
			b.misuse("For(%T): %w", object, err)
		}
		b.object, b.kind = object, kind
	}
	return b
}

// WithDefaulter serves a mutating webhook. d is a webhook.Defaulter[T], where T is the type of the object given to For
// or an interface that it implements, such as runtime.Object. Let the compiler check that:
//
//	var _ webhook.Defaulter[*v1.Website] = (*defaulter)(nil)
func (b *WebhookBuilder) WithDefaulter(d any) *WebhookBuilder {
	b.set(&b.defaulter, "WithDefaulter", d)
	return b
}

// WithValidator serves a validating webhook. v is a webhook.Validator[T], with T as in WithDefaulter.
func (b *WebhookBuilder) WithValidator(v any) *WebhookBuilder {
	b.set(&b.validator, "WithValidator", v)
	return b
}

func (b *WebhookBuilder) set(h *hook, call string, given any) {
	switch {
	case misuse.IsNil(given):
		b.misuse("%s: it is given nil", call)
	case h.given != nil:
		b.misuse("%s was called twice: a kind has one of each", call)
	default:
		h.given = given
	}
}

// WithConverter sets the converter between the versions of the kind. Without it, types with the methods of
// conversion.Hub and conversion.Convertible convert themselves.
func (b *WebhookBuilder) WithConverter(of func(*runtime.Scheme) (conversion.Converter, error)) *WebhookBuilder {
	if of == nil {
		b.misuse("WithConverter: the function is nil")
	}
	b.converter = of
	return b
}

// WithContextFunc sets a function that returns the context for a request of the mutating and of the validating webhook,
// for example with the value of a header.
func (b *WebhookBuilder) WithContextFunc(
	f func(ctx context.Context, r *http.Request) context.Context,
) *WebhookBuilder {
	b.withContext = f
	return b
}

// WithLogConstructor sets a function that returns the logger in the context of a request. The default is
// admission.DefaultLogConstructor.
func (b *WebhookBuilder) WithLogConstructor(
	f func(base klog.Logger, req *admission.Request) klog.Logger,
) *WebhookBuilder {
	b.newLog = f
	return b
}

// WithDefaulterCustomPath sets the path of the mutating webhook. The default is /mutate-group-version-kind, with dashes
// for the dots of the group.
func (b *WebhookBuilder) WithDefaulterCustomPath(path string) *WebhookBuilder {
	b.defaulter.path = b.custom("WithDefaulterCustomPath", path)
	return b
}

// WithValidatorCustomPath sets the path of the validating webhook. The default is /validate-group-version-kind, with
// dashes for the dots of the group.
func (b *WebhookBuilder) WithValidatorCustomPath(path string) *WebhookBuilder {
	b.validator.path = b.custom("WithValidatorCustomPath", path)
	return b
}

var validPath = regexp.MustCompile(`^(/[a-zA-Z0-9_-]+)+$`)

func (b *WebhookBuilder) custom(call, path string) string {
	if !validPath.MatchString(path) {
		b.misuse("%s: the path %q is not like /validate-website: slashes, letters, digits, _ and -", call, path)
	}
	return path
}

// Complete registers the webhooks with the manager's server. If the scheme of the manager has several versions of the
// kind that convert through a hub, it registers their conversion too.
//
// Errors: all mistakes in the preceding calls, joined; a path that is taken; versions of which only some can be
// converted.
func (b *WebhookBuilder) Complete() error {
	if b.object == nil && len(b.wrong) == 0 {
		b.misuse("it is not said whose webhooks these are: call For(&Kind{})")
	}
	var hooks []hook
	if b.object != nil && b.manager != nil {
		hooks = b.hooks()
	}
	if len(b.wrong) > 0 {
		return b.failed(errors.Join(b.wrong...))
	}
	server := b.manager.GetWebhookServer()
	converts, err := b.convert(server)
	if err != nil {
		return b.failed(err)
	}
	if len(hooks) == 0 && !converts {
		return b.failed(errors.New("nothing would be served: call WithDefaulter or WithValidator"))
	}
	for _, h := range hooks {
		hook := h.given.(*admission.Webhook)
		hook.WithContextFunc, hook.LogConstructor = b.withContext, b.newLog
		if err := server.Register(h.path, hook); err != nil {
			return b.failed(err)
		}
	}
	return nil
}

func (b *WebhookBuilder) failed(err error) error {
	return fmt.Errorf("build webhooks of %s: %w", cmp.Or(b.kind.Kind, "an unknown kind"), err)
}

// hooks returns the webhooks to register. It records mistakes.
func (b *WebhookBuilder) hooks() (all []hook) {
	name := strings.ReplaceAll(b.kind.Group, ".", "-") + "-" + b.kind.Version + "-" + strings.ToLower(b.kind.Kind)
	scheme := b.manager.GetScheme()
	if d := b.defaulter; d.given != nil {
		if call, err := defaulterOf(d.given, b.object); err != nil {
			b.misuse("WithDefaulter(%T): %w", d.given, err)
		} else {
			all = append(all, d.at("/mutate-"+name, admission.WithCustomDefaulter(scheme, b.object, call)))
		}
	}
	if v := b.validator; v.given != nil {
		if call, err := validatorOf(v.given, b.object); err != nil {
			b.misuse("WithValidator(%T): %w", v.given, err)
		} else {
			all = append(all, v.at("/validate-"+name, admission.WithCustomValidator(scheme, b.object, call)))
		}
	}
	return all
}

// at returns a hook that serves w at the path of h, or at the given path if h has none.
func (h hook) at(path string, w *admission.Webhook) hook {
	return hook{given: w, path: cmp.Or(h.path, path)}
}

// convert registers the conversion of the kind, and reports whether it has one.
func (b *WebhookBuilder) convert(server *webhook.Server) (bool, error) {
	scheme := b.manager.GetScheme()
	if b.converter != nil {
		c, err := b.converter(scheme)
		if err != nil {
			return false, fmt.Errorf("WithConverter: %w", err)
		}
		all, err := server.Conversion(scheme)
		if err != nil {
			return false, err
		}
		return true, all.Register(b.kind.GroupKind(), c)
	}
	if _, ok := b.object.(runtime.Unstructured); ok {
		return false, nil
	}
	if ok, err := conversion.IsConvertible(scheme, b.object); !ok || err != nil {
		return false, err
	}
	all, err := server.Conversion(scheme)
	if err != nil {
		return false, err
	}
	return true, all.RegisterHub(b.object)
}

// checkMethod returns an error if the method f, which is not valid if there is none with that name, has another
// signature. The parameters must be a context and in objects of the example's type, and the results must have the types
// out.
//
// Its callers look f up, by a constant name. With a variable, the linker would keep every exported method of every type
// of the program.
func checkMethod(f reflect.Value, name string, example runtime.Object, in int, out ...reflect.Type) error {
	of, contextType := reflect.TypeOf(example), reflect.TypeFor[context.Context]()
	params := "(context.Context" + strings.Repeat(", "+of.String(), in) + ")"
	if !f.IsValid() {
		return fmt.Errorf("it has no method %s%s", name, params)
	}
	t := f.Type()
	fits := t.NumIn() == 1+in && t.NumOut() == len(out) && t.In(0) == contextType
	for i := 1; fits && i <= in; i++ {
		fits = of.AssignableTo(t.In(i))
	}
	for i := 0; fits && i < len(out); i++ {
		isList := out[i].Kind() == reflect.Slice // []string, or a type with this form, such as admission.Warnings
		fits = t.Out(i) == out[i] || isList && t.Out(i).ConvertibleTo(out[i])
	}
	if !fits {
		return fmt.Errorf("its method %s is %v, want %s%s", name, t, params, results(out))
	}
	return nil
}

// results returns the types as a Go result list.
func results(out []reflect.Type) string {
	names := make([]string, 0, len(out))
	for _, t := range out {
		names = append(names, t.String())
	}
	return " (" + strings.Join(names, ", ") + ")"
}
