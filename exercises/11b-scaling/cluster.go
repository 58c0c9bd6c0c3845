package scaling

// Deployment is what a user asks for: Replicas Pods. During a rollout, up to MaxUnavailable of them may be missing, and
// up to MaxSurge Pods may exist in addition.
type Deployment struct {
	Version                            string
	Replicas, MaxSurge, MaxUnavailable int
}

// Set is a ReplicaSet of one version. Size is how many Pods it asks for, and Available how many can serve.
type Set struct {
	Version         string
	Size, Available int
	// Desired and Max are annotations. At each write, they are set to the Deployment's Replicas and to
	// Replicas+MaxSurge.
	Desired, Max int
}

// Cluster has a Deployment and its ReplicaSets, oldest first.
type Cluster struct {
	Deployment Deployment
	Sets       []*Set
	// Writes counts the calls of Write.
	Writes int
}

// Write sets the size of a ReplicaSet and updates its annotations.
func (c *Cluster) Write(s *Set, size int) {
	c.Writes++
	s.Size, s.Available = size, min(s.Available, size)
	s.Desired, s.Max = c.Deployment.Replicas, c.Deployment.Replicas+c.Deployment.MaxSurge
}

// Current returns the ReplicaSet of the Deployment's version, or nil if there is none.
func (c *Cluster) Current() *Set {
	for _, s := range c.Sets {
		if s.Version == c.Deployment.Version {
			return s
		}
	}
	return nil
}

// Active returns the ReplicaSets that ask for Pods.
func (c *Cluster) Active() (active []*Set) {
	for _, s := range c.Sets {
		if s.Size > 0 {
			active = append(active, s)
		}
	}
	return active
}

// Total returns how many Pods all ReplicaSets ask for, and how many are available.
func (c *Cluster) Total() (size, available int) {
	for _, s := range c.Sets {
		size, available = size+s.Size, available+s.Available
	}
	return size, available
}
