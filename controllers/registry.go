package controllers

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/flyball-dev/flyball/controllers/deployment"
	"github.com/flyball-dev/flyball/controllers/endpoints"
	"github.com/flyball-dev/flyball/controllers/endpointslice"
	"github.com/flyball-dev/flyball/controllers/endpointslicemirroring"
	"github.com/flyball-dev/flyball/controllers/garbagecollector"
	"github.com/flyball-dev/flyball/controllers/replicaset"
	"github.com/flyball-dev/flyball/manager"
)

// descriptor is a controller that can be run.
type descriptor struct {
	// name is unique among all names and aliases.
	name string
	// aliases are further names, for the selection only.
	aliases []string
	// disabled excludes the controller from "*".
	disabled bool
	// build makes the controller on a manager, without adding it.
	build func(m *manager.Manager, o Options) (manager.Runnable, error)
}

// Options selects and configures the controllers. The zero value runs all of them, as kube-controller-manager does.
type Options struct {
	// Selection is what --controllers takes; see [Enabled]. Nil means "*".
	Selection []string

	Deployment             deployment.Options
	ReplicaSet             replicaset.Options
	Endpoints              endpoints.Options
	EndpointSlice          endpointslice.Options
	EndpointSliceMirroring endpointslicemirroring.Options
	GarbageCollector       garbagecollector.Options
}

// all is the element of a selection that stands for all controllers that are not disabled by default.
const all = "*"

// known has all controllers, in alphabetical order.
//
// Source: kube-controller-manager v1.37.2 cmd/kube-controller-manager/names and app/controllermanager.go, for names
// and aliases. "endpoints" is an alias of our own: it is what people type.
var known = []descriptor{
	{name: deployment.Name, aliases: []string{"deployment"}, build: newDeployment},
	{name: endpoints.Name, aliases: []string{"endpoint", "endpoints"}, build: newEndpoints},
	{name: endpointslice.Name, aliases: []string{"endpointslice"}, build: newEndpointSlice},
	{
		name: endpointslicemirroring.Name, aliases: []string{"endpointslicemirroring"},
		build: newEndpointSliceMirroring,
	},
	{name: garbagecollector.Name, aliases: []string{"garbagecollector"}, build: newGarbageCollector},
	{name: replicaset.Name, aliases: []string{"replicaset"}, build: newReplicaSet},
}

// Known returns the names of all controllers, in alphabetical order.
func Known() (names []string) {
	for _, d := range known {
		names = append(names, d.name)
	}
	return names
}

// Enabled returns the names of the controllers that a selection enables. "name" enables one, "-name" disables one, and
// "*" enables all that are not disabled by default. Without "*", only controllers that are named are enabled. If a
// controller is named several times, the first counts: "*,-deployment,deployment" disables the deployment controller.
//
// Errors: one for each name that no controller has, joined.
//
// Source: k8s.io/controller-manager v0.37.2 app/helper.go, IsControllerEnabled.
func Enabled(selection []string) ([]string, error) { return choose(known, selection) }

func choose(known []descriptor, selection []string) ([]string, error) {
	if selection == nil {
		selection = []string{all}
	}
	wanted := map[string]bool{} // by name; the first mention wins
	star := slices.Contains(selection, all)
	var unknown []error
	for _, word := range selection {
		if word == all {
			continue
		}
		alias, negated := strings.CutPrefix(word, "-")
		i := slices.IndexFunc(known,
			func(d descriptor) bool { return d.name == alias || slices.Contains(d.aliases, alias) })
		if i < 0 {
			unknown = append(unknown, unknownError(alias, known))
			continue
		}
		if _, mentioned := wanted[known[i].name]; !mentioned {
			wanted[known[i].name] = !negated
		}
	}
	if len(unknown) > 0 {
		return nil, errors.Join(unknown...)
	}
	var enabled []string
	for _, d := range known {
		if on, mentioned := wanted[d.name]; on || !mentioned && star && !d.disabled {
			enabled = append(enabled, d.name)
		}
	}
	return enabled, nil
}

// unknownError returns an error for a name that no controller has: the text of kube-controller-manager, and the known
// names.
func unknownError(name string, known []descriptor) error {
	names := make([]string, 0, len(known))
	for _, d := range known {
		names = append(names, fmt.Sprintf("%s (%s)", d.name, strings.Join(d.aliases, ", ")))
	}
	return fmt.Errorf("%q is not in the list of known controllers: %s", name, strings.Join(names, ", "))
}

// New builds the controller of a name on a manager, without adding it.
//
// Errors: no controller has the name; those of a controller that cannot be built.
func New(m *manager.Manager, name string, o Options) (manager.Runnable, error) {
	i := slices.IndexFunc(known, func(d descriptor) bool { return d.name == name })
	if i < 0 {
		return nil, unknownError(name, known)
	}
	controller, err := known[i].build(m, o)
	if err != nil {
		return nil, fmt.Errorf("build %s: %w", name, err)
	}
	return controller, nil
}

// Add builds the controllers that o selects and adds them to the manager, which runs them.
//
// Errors: those of [Enabled], before anything is built; those of a controller that cannot be built.
func Add(m *manager.Manager, o Options) error {
	enabled, err := Enabled(o.Selection)
	if err != nil {
		return err
	}
	for _, name := range enabled {
		controller, err := New(m, name, o)
		if err != nil {
			return err
		}
		if err := m.Add(controller); err != nil {
			return err
		}
	}
	return nil
}
