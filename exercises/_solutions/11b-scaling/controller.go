// Package scaling is the solution of task 11b.
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
		// Write even if the size is right, to update the annotations. The next Sync then continues the rollout.
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
