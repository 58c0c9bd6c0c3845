// Package rollout is the solution of task 11a.
package rollout

import (
	"fmt"
	"strconv"
	"strings"
)

// Deployment is what a user asks for. MaxSurge and MaxUnavailable are numbers of Pods, such as "2", or percentages of
// Replicas, such as "25%".
type Deployment struct {
	Replicas                 int
	MaxSurge, MaxUnavailable string
}

// Set is a ReplicaSet. Size is how many Pods it asks for, and Available how many of them can serve.
type Set struct {
	Name            string
	Size, Available int
}

// Limits has the bounds of a rollout: at most Most Pods, of which at least Least are available.
type Limits struct{ Replicas, Most, Least int }

// Resize is a step of a plan.
type Resize struct {
	Set      string
	From, To int
}

// Limits returns what the Deployment allows.
func (d Deployment) Limits() (Limits, error) {
	surge, err := part(d.MaxSurge, d.Replicas, 99)
	if err != nil {
		return Limits{}, fmt.Errorf("read maxSurge: %w", err)
	}
	unavailable, err := part(d.MaxUnavailable, d.Replicas, 0)
	if err != nil {
		return Limits{}, fmt.Errorf("read maxUnavailable: %w", err)
	}
	if surge == 0 && unavailable == 0 {
		unavailable = 1
	}
	return Limits{d.Replicas, d.Replicas + surge, d.Replicas - min(unavailable, d.Replicas)}, nil
}

// part parses a number, or a percentage of the whole. With a remainder of 99 it rounds up, with 0 down.
func part(s string, whole, remainder int) (int, error) {
	percent, found := strings.CutSuffix(s, "%")
	n, err := strconv.Atoi(percent)
	if err != nil || !found {
		return n, err
	}
	return (n*whole + remainder) / 100, nil
}

// Plan returns the ReplicaSets that get another size now. old is sorted, the oldest first.
func Plan(l Limits, old []Set, current Set) []Resize {
	total, available := current.Size, current.Available
	for _, s := range old {
		total += s.Size
		available += s.Available
	}
	if to := current.Size + min(l.Replicas-current.Size, max(0, l.Most-total)); to != current.Size {
		return []Resize{{current.Name, current.Size, to}}
	}
	room := total - l.Least - (current.Size - current.Available)
	if room <= 0 {
		return nil
	}
	remove := make([]int, len(old))
	for i, s := range old {
		remove[i] = min(s.Size-s.Available, room)
		room -= remove[i]
	}
	for i, s := range old {
		n := max(0, min(s.Size-remove[i], available-l.Least))
		remove[i] += n
		available -= n
	}
	var plan []Resize
	for i, s := range old {
		if remove[i] > 0 {
			plan = append(plan, Resize{s.Name, s.Size, s.Size - remove[i]})
		}
	}
	return plan
}
