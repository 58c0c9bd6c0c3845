package terminal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/discovery"
	cached "k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// Options configure a [Terminal].
type Options struct {
	// Logs writes the lines of the log that contain a text, and with follow those to come until ctx is done.
	Logs func(ctx context.Context, out io.Writer, text string, follow bool) error
}

// Terminal runs commands on an API.
//
// Concurrency: its method may be called from any goroutine.
type Terminal struct {
	o       Options
	rest    rest.Interface
	dynamic dynamic.Interface
	mapper  *restmapper.DeferredDiscoveryRESTMapper
	names   meta.RESTMapper // mapper with the short names of resources
}

// New returns a Terminal for the API at config.
func New(config *rest.Config, o Options) (*Terminal, error) {
	config = rest.CopyConfig(config)
	config.UserAgent = "kubectl/playground" // inspect/tap does not hold it up.
	t := &Terminal{o: o}
	var dynamicErr, restErr error
	t.dynamic, dynamicErr = dynamic.NewForConfig(config)
	found, err := discovery.NewDiscoveryClientForConfig(config)
	kinds := runtime.NewScheme()
	metav1.AddToGroupVersion(kinds, schema.GroupVersion{Version: "v1"})
	metaErr := metav1.AddMetaToScheme(kinds)
	config.NegotiatedSerializer, config.GroupVersion = serializer.NewCodecFactory(kinds).WithoutConversion(),
		&schema.GroupVersion{}
	t.rest, restErr = rest.UnversionedRESTClientFor(config)
	if err := errors.Join(err, dynamicErr, metaErr, restErr); err != nil {
		return nil, err
	}
	memory := cached.NewMemCacheClient(found)
	t.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory)
	t.names = restmapper.NewShortcutExpander(t.mapper, memory, func(string) {})
	return t, nil
}

// command is one command with its flags.
type command struct {
	*Terminal
	out      io.Writer
	manifest io.Reader
	args     []string
	changed  func(flag string) bool

	namespace, output, selector, fields, image string
	all, watch, follow, noHeaders              bool
	showLabels, wait                           bool
	replicas, revision                         int
}

// commands are all commands, by their first word.
var commands = map[string]func(*command, context.Context) error{
	"get": (*command).get, "describe": (*command).describe, "apply": (*command).apply, "create": (*command).create,
	"scale": (*command).scale, "rollout": (*command).rollout, "delete": (*command).delete, "set": (*command).set,
	"logs": (*command).logs, "help": (*command).help,
}

const usage = `  get TYPE [NAME] [-o wide|yaml|json|name] [-l SELECTOR] [-n NAMESPACE|-A] [-w]
  describe TYPE NAME               the object and its events
  apply -f -                       what the editor has
  create deployment NAME --image=IMAGE [--replicas=N]
  scale TYPE/NAME --replicas=N
  set image TYPE/NAME CONTAINER=IMAGE
  rollout status|history|undo|restart|pause|resume TYPE/NAME
  delete TYPE NAME | -f - | -l SELECTOR
  logs [-f] [TEXT]                 the lines of the controllers' log that contain a text
`

// word is a word of a command line, and quoted a part of one in quotes.
var word, quoted = regexp.MustCompile(`(?:[^\s'"]|'[^']*'|"[^"]*")+`), regexp.MustCompile(`'([^']*)'|"([^"]*)"`)

// Run runs a command line. manifest is what "-f -" reads. The errors are in the words of kubectl, and Run writes them,
// too.
func (t *Terminal) Run(ctx context.Context, line string, manifest io.Reader, out io.Writer) {
	words := word.FindAllString(line, -1)
	for i := range words {
		words[i] = quoted.ReplaceAllString(words[i], "$1$2")
	}
	if len(words) > 0 && words[0] == "kubectl" {
		words = words[1:]
	}
	if len(words) == 0 {
		return
	}
	run := commands[words[0]]
	if run == nil {
		fmt.Fprintf(out, "error: unknown command %q. These are known:\n%s", words[0], usage)
		return
	}
	c := &command{Terminal: t, out: out, manifest: manifest}
	f := c.flags()
	c.changed = f.Changed
	err := f.Parse(words[1:])
	if c.args = f.Args(); err == nil {
		err = run(c, ctx)
	}
	if err != nil && ctx.Err() == nil {
		c.fail(err)
	}
}

// fail writes an error, or all that were joined.
func (c *command) fail(err error) {
	if several, ok := err.(interface{ Unwrap() []error }); ok { //nolint:errorlint // not what it wraps
		for _, each := range several.Unwrap() {
			c.fail(each)
		}
		return
	}
	if status := apierrors.APIStatus(nil); errors.As(err, &status) && status.Status().Reason != "" {
		fmt.Fprintf(c.out, "Error from server (%s): %v\n", status.Status().Reason, err)
		return
	}
	fmt.Fprintf(c.out, "error: %v\n", err)
}

func (c *command) flags() *pflag.FlagSet {
	f := pflag.NewFlagSet("kubectl", pflag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVarP(&c.namespace, "namespace", "n", metav1.NamespaceDefault, "")
	f.StringVarP(&c.output, "output", "o", "", "")
	f.StringVarP(&c.selector, "selector", "l", "", "")
	f.StringVar(&c.image, "image", "", "")
	f.BoolVarP(&c.all, "all-namespaces", "A", false, "")
	f.BoolVarP(&c.watch, "watch", "w", false, "")
	f.BoolVar(&c.noHeaders, "no-headers", false, "")
	f.BoolVar(&c.showLabels, "show-labels", false, "")
	f.BoolVar(&c.wait, "wait", true, "")
	f.IntVar(&c.replicas, "replicas", 1, "")
	f.IntVar(&c.revision, "to-revision", 0, "")
	f.BoolVarP(&c.follow, "follow", "f", false, "")
	return f
}

func (c *command) help(context.Context) error {
	_, err := fmt.Fprint(c.out, usage)
	return err
}

func (c *command) logs(ctx context.Context) error {
	return c.o.Logs(ctx, c.out, strings.Join(c.args, " "), c.follow)
}

// target is a resource, or an object of it.
type target struct {
	*meta.RESTMapping
	namespace string                     // empty for all namespaces, and for a resource without
	name      string                     // empty for all objects
	object    *unstructured.Unstructured // what the editor has, if the target is from there
}

// target returns a target in the namespace of the command.
func (c *command) target(m *meta.RESTMapping, name string) target {
	t := target{RESTMapping: m, name: name}
	if m.Scope.Name() == meta.RESTScopeNameNamespace && !c.all {
		t.namespace = c.namespace
	}
	return t
}

// String returns the name as kubectl prints it: "deployment.apps/web".
func (t target) String() string { return t.kind() + "/" + t.name }

func (t target) kind() string {
	return strings.ToLower(t.GroupVersionKind.GroupKind().String())
}

// each does something with all targets, even after an error.
func each(found []target, do func(target) error) error {
	var errs []error
	for _, t := range found {
		errs = append(errs, do(t))
	}
	return errors.Join(errs...)
}

// targets reads "TYPE", "TYPE,TYPE", "TYPE NAME…" and "TYPE/NAME…".
func (c *command) targets(args []string) (found []target, err error) {
	if len(args) == 0 {
		return nil, errors.New("you must name the type of resource, such as pods")
	}
	add := func(kind, name string) {
		m, failed := c.mapping(kind)
		if failed == nil {
			found = append(found, c.target(m, name))
		}
		err = cmp.Or(err, failed)
	}
	if strings.Contains(args[0], "/") {
		for _, arg := range args {
			kind, name, ok := strings.Cut(arg, "/")
			switch {
			case !ok:
				return nil, errors.New("there is no need to specify a resource type as a separate argument when " +
					"passing arguments in resource/name form (e.g. 'kubectl get resource/<resource_name>' instead " +
					"of 'kubectl get resource resource/<resource_name>'")
			case strings.Contains(name, "/"):
				return nil, errors.New("arguments in resource/name form may not have more than one slash")
			case kind == "" || name == "":
				return nil, errors.New("arguments in resource/name form must have a single resource and name")
			}
			add(kind, name)
		}
	} else {
		names := args[1:]
		if len(names) == 0 {
			names = []string{""}
		}
		for kind := range strings.SplitSeq(args[0], ",") {
			for _, name := range names {
				add(kind, name)
			}
		}
	}
	if err == nil && found[0].name != "" && c.selector != "" {
		err = errors.New("name cannot be provided when a selector is specified")
	}
	if err == nil && found[0].name != "" && c.all {
		err = errors.New("a resource cannot be retrieved by name across all namespaces")
	}
	return found, err
}

// one returns the only target, which has a name.
func (c *command) one(args []string) (target, error) {
	found, err := c.targets(args)
	if err == nil && (len(found) != 1 || found[0].name == "") {
		err = errors.New("name one object, as in deployment/web")
	}
	if err != nil {
		return target{}, err
	}
	return found[0], nil
}

func (c *command) mapping(kind string) (*meta.RESTMapping, error) {
	named := schema.ParseGroupResource(strings.ToLower(kind))
	found, err := c.names.ResourceFor(named.WithVersion(""))
	if err != nil {
		c.mapper.Reset() // A definition may have come.
		found, err = c.names.ResourceFor(named.WithVersion(""))
	}
	if meta.IsNoMatchError(err) || kind == "" {
		return nil, fmt.Errorf("the server doesn't have a resource type %q", kind)
	}
	if err != nil {
		return nil, err
	}
	of, err := c.mapper.KindFor(found)
	if err != nil {
		return nil, err
	}
	return c.Serves(of)
}

// Serves returns how the API serves a kind, or an error if it does not.
func (t *Terminal) Serves(kind schema.GroupVersionKind) (*meta.RESTMapping, error) {
	found, err := t.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		t.mapper.Reset() // A definition may have come.
		found, err = t.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	}
	return found, err
}

// objects is the client of a target.
func (c *command) objects(t target) dynamic.ResourceInterface {
	return c.dynamic.Resource(t.Resource).Namespace(t.namespace)
}
