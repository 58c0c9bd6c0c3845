package balancer

import "errors"

// ErrNotFound is the answer to a question about something that is not there.
var ErrNotFound = errors.New("not found")

// Service is an object of the API server. Balanced is its spec: whether it wants a load balancer.
type Service struct {
	Name     string
	Balanced bool
}

// Services is the API server.
type Services interface {
	// Get returns one Service, or ErrNotFound.
	Get(name string) (Service, error)
	// List returns all.
	List() ([]Service, error)
}

// Balancer is a load balancer. Cluster says whose it is.
type Balancer struct {
	Name    string
	Cluster string
}

// Cloud is where the load balancers are.
type Cloud interface {
	// Ensure creates a load balancer unless it is there already.
	Ensure(b Balancer) error
	// Delete deletes one, whosoever it is. It answers nil if there is none of that name.
	Delete(name string) error
	// List returns all load balancers, in the order of their names.
	List() ([]Balancer, error)
}
