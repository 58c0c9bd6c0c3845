package balancer

// Service is an object of the API server. Balanced is its spec: it asks for a load balancer.
type Service struct {
	Name     string
	Balanced bool
}

// Services is the API server.
type Services interface {
	// Get returns one Service, or kube.ErrNotFound.
	Get(name string) (Service, error)
	// List returns all Services.
	List() ([]Service, error)
}

// Balancer is a load balancer. Cluster is the cluster that it belongs to.
type Balancer struct {
	Name    string
	Cluster string
}

// Cloud has the load balancers of this cluster and of others.
type Cloud interface {
	// Ensure creates a load balancer unless it exists already.
	Ensure(b Balancer) error
	// Delete deletes the load balancer of that name, whichever cluster it belongs to. If there is none, it returns nil.
	Delete(name string) error
	// List returns all load balancers, in the order of their names.
	List() ([]Balancer, error)
}
