package loop

// Set asks for Pods. Want is its spec: how many Pods a user asks for. Have is its status: how many the loop has found.
// Every change of a Set raises its Version.
type Set struct {
	Name    string
	Want    int
	Have    int
	Version int
}

// Pod is a copy of a program. Set is its label: the name of the Set that it belongs to.
type Pod struct {
	Name string
	Set  string
}

// API is the API server. Other programs use it at the same time.
type API interface {
	// Get returns a Set.
	Get(set string) (Set, error)
	// List returns the Pods of a Set, in the order of their names.
	List(set string) ([]Pod, error)
	// Create creates a Pod. It answers kube.ErrExists if the name is taken.
	Create(p Pod) error
	// Delete deletes a Pod. It answers kube.ErrNotFound if it is gone.
	Delete(pod string) error
	// UpdateStatus writes Have. It answers kube.ErrConflict if s.Version is not the latest.
	UpdateStatus(s Set) error
}
