package controllers

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/flyball-dev/flyball/controllers/deployment"
	"github.com/flyball-dev/flyball/controllers/endpoints"
	"github.com/flyball-dev/flyball/controllers/endpointslice"
	"github.com/flyball-dev/flyball/controllers/garbagecollector"
	"github.com/flyball-dev/flyball/controllers/replicaset"
	"github.com/flyball-dev/flyball/manager"
)

// Descriptor is a controller that can be run.
type Descriptor struct {
	// Name is unique among all names and aliases.
	Name string
	// Aliases are further names, for the selection only.
	Aliases []string
	// DisabledByDefault excludes the controller from "*".
	DisabledByDefault bool
	// New builds the controller on a manager, without adding it.
	New func(m *manager.Manager, o Options) (manager.Runnable, error)
}

// Options selects and configures the controllers. The zero value runs all of them, as kube-controller-manager does.
type Options struct {
	// Selection is what --controllers takes; see [Enabled]. Nil means "*".
	Selection []string

	Deployment       deployment.Options
	ReplicaSet       replicaset.Options
	Endpoints        endpoints.Options
	EndpointSlice    endpointslice.Options
	GarbageCollector garbagecollector.Options
}

// all is the element of a selection that stands for all controllers that are not disabled by default.
const all = "*"

// Known returns all controllers, in alphabetical order.
//
// Source: kube-controller-manager v1.37.1 cmd/kube-controller-manager/names and app/controllermanager.go, for names
// and aliases. "endpoints" is an alias of our own: it is what people type.
func Known() []Descriptor {
	return []Descriptor{
		{Name: deployment.Name, Aliases: []string{"deployment"}, New: newDeployment},
		{Name: endpoints.Name, Aliases: []string{"endpoint", "endpoints"}, New: newEndpoints},
		{Name: endpointslice.Name, Aliases: []string{"endpointslice"}, New: newEndpointSlice},
		{Name: garbagecollector.Name, Aliases: []string{"garbagecollector"}, New: newGarbageCollector},
		{Name: replicaset.Name, Aliases: []string{"replicaset"}, New: newReplicaSet},
	}
}

// Enabled returns the controllers that a selection enables. "name" enables one, "-name" disables one, and "*" enables
// all that are not disabled by default. Without "*", only controllers that are named are enabled. If a controller is
// named several times, the first counts: "*,-deployment,deployment" disables the deployment controller.
//
// Errors: one for each name that no controller has, joined.
//
// Source: k8s.io/controller-manager v0.37.2 app/helper.go, IsControllerEnabled.
func Enabled(selection []string) ([]Descriptor, error) { return choose(Known(), selection) }

func choose(known []Descriptor, selection []string) ([]Descriptor, error) {
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
			func(d Descriptor) bool { return d.Name == alias || slices.Contains(d.Aliases, alias) })
		if i < 0 {
			unknown = append(unknown, unknownError(alias, known))
			continue
		}
		if _, mentioned := wanted[known[i].Name]; !mentioned {
			wanted[known[i].Name] = !negated
		}
	}
	if len(unknown) > 0 {
		return nil, errors.Join(unknown...)
	}
	var enabled []Descriptor
	for _, d := range known {
		if on, mentioned := wanted[d.Name]; on || !mentioned && star && !d.DisabledByDefault {
			enabled = append(enabled, d)
		}
	}
	return enabled, nil
}

// unknownError returns an error for a name that no controller has: the text of kube-controller-manager, and the known
// names.
func unknownError(name string, known []Descriptor) error {
	names := make([]string, 0, len(known))
	for _, d := range known {
		names = append(names, fmt.Sprintf("%s (%s)", d.Name, strings.Join(d.Aliases, ", ")))
	}
	return fmt.Errorf("%q is not in the list of known controllers: %s", name, strings.Join(names, ", "))
}

// Add builds the controllers that o selects and adds them to the manager, which runs them.
//
// Errors: those of [Enabled], before anything is built; those of a controller that cannot be built.
func Add(m *manager.Manager, o Options) error {
	enabled, err := Enabled(o.Selection)
	if err != nil {
		return err
	}
	for _, d := range enabled {
		controller, err := d.New(m, o)
		if err != nil {
			return fmt.Errorf("build %s: %w", d.Name, err)
		}
		if err := m.Add(controller); err != nil {
			return err
		}
	}
	return nil
}
