package simulated

import (
	"github.com/flyball-dev/flyball/controllers"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/simtest"
)

// Build makes one process. It is the type of [simtest.Scenario].Build.
type Build = func(e *simtest.Env) (simtest.Program, error)

// Controllers returns the function that builds a manager with the controllers that o selects, as flyball manager does.
func Controllers(o controllers.Options) Build {
	return func(e *simtest.Env) (simtest.Program, error) {
		trim := informer.FactoryOptions{Transform: controllers.Trim}
		m, err := manager.New(e.Config(), manager.Options{Informers: trim})
		if err != nil {
			return nil, err
		}
		return m, controllers.Add(m, o)
	}
}

// Selected is [Controllers] of the controllers with these names.
func Selected(names ...string) Build { return Controllers(controllers.Options{Selection: names}) }
