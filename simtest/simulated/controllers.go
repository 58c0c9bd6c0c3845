package simulated

import (
	"github.com/flyball-dev/flyball/controllers"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/simtest"
)

// Controllers returns the function that builds a manager with the controllers of these names, as flyball manager does.
func Controllers(names ...string) func(*simtest.Env) (simtest.Program, error) {
	return func(e *simtest.Env) (simtest.Program, error) {
		trim := informer.FactoryOptions{Transform: controllers.Trim}
		m, err := manager.New(e.Config(), manager.Options{Informers: trim})
		if err != nil {
			return nil, err
		}
		return m, controllers.Add(m, controllers.Options{Selection: names})
	}
}
