// Package scaling is task 11b: a rollout that hangs.
//
// A Deployment of five Pods, with maxSurge 0 and maxUnavailable 1, gets a new version. The controller creates the new
// ReplicaSet without Pods, and removes one Pod from the old one. At this moment the user asks for four Pods instead of
// five. From then on nothing happens: no Pod of the new version is created, and no error is reported. This is
// https://github.com/kubernetes/kubernetes/issues/102551, and kube-controller-manager v1.37.2 still has the bug, in
// pkg/controller/deployment/sync.go.
//
// Sync is a small version of one pass of that controller. It distinguishes two situations. If the user has changed the
// size of the Deployment, it spreads the change over the ReplicaSets. Otherwise it takes a step of the rollout. Run the
// tests, read the code, and find out which of the two situations Sync sees here, and why that never changes. File
// cluster.go is given.
package scaling

import "math"

// Sync takes one step towards what the Deployment asks for.
func Sync(c *Cluster) {
	if sizeChanged(c) {
		scale(c)
		return
	}
	roll(c)
}

// sizeChanged reports whether the Deployment's size has changed since an active ReplicaSet was last written.
func sizeChanged(c *Cluster) bool {
	for _, s := range c.Active() {
		if s.Desired != c.Deployment.Replicas {
			return true
		}
	}
	return false
}

// scale gives each active ReplicaSet its share of the Deployment's new size. It does not continue the rollout.
func scale(c *Cluster) {
	active, replicas := c.Active(), c.Deployment.Replicas
	if len(active) == 1 {
		if active[0].Size == replicas {
			return
		}
		c.Write(active[0], replicas)
		return
	}
	rest := 0
	if replicas > 0 {
		rest = replicas + c.Deployment.MaxSurge
	}
	largest := active[0]
	sizes := map[*Set]int{}
	for _, s := range active {
		if s.Size > largest.Size {
			largest = s
		}
		share := float64(s.Size) * float64(replicas+c.Deployment.MaxSurge) / float64(s.Max)
		sizes[s] = min(int(math.Round(share)), rest)
		rest -= sizes[s]
	}
	sizes[largest] += rest
	for _, s := range active {
		c.Write(s, sizes[s])
	}
}

// roll takes a step of the rollout: the new ReplicaSet grows, or else the old ones shrink.
func roll(c *Cluster) {
	d := c.Deployment
	current := c.Current()
	if current == nil {
		current = &Set{Version: d.Version}
		c.Sets = append(c.Sets, current)
	}
	total, available := c.Total()
	if to := min(d.Replicas, current.Size+max(0, d.Replicas+d.MaxSurge-total)); to != current.Size {
		c.Write(current, to)
		return
	}
	least := d.Replicas - d.MaxUnavailable
	room := total - least - (current.Size - current.Available)
	for _, s := range c.Sets {
		n := min(s.Size, room, s.Size-s.Available+available-least)
		if s != current && n > 0 {
			room, available = room-n, available-max(0, n-(s.Size-s.Available))
			c.Write(s, s.Size-n)
		}
	}
}
