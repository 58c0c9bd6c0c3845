package scaling

import (
	"fmt"
	"strings"
	"testing"
)

// newCluster returns a cluster in which all Pods of a Deployment are available.
func newCluster(d Deployment) *Cluster {
	c := &Cluster{Deployment: d, Sets: []*Set{{Version: d.Version}}}
	c.Write(c.Sets[0], d.Replicas)
	c.Sets[0].Available = d.Replicas
	c.Writes = 0
	return c
}

// settle calls Sync, and lets the Pods of versions that are not broken become available, until nothing changes any
// more.
func settle(c *Cluster) {
	for range 200 {
		before := fmt.Sprint(c, c.Writes)
		Sync(c)
		for _, s := range c.Sets {
			if s.Version != "broken" {
				s.Available = s.Size
			}
		}
		if fmt.Sprint(c, c.Writes) == before {
			return
		}
	}
}

// String lists the sizes: "v1 has 4, v2 has 1".
func (c *Cluster) String() string {
	var parts []string
	for _, s := range c.Sets {
		parts = append(parts, fmt.Sprintf("%s has %d", s.Version, s.Size))
	}
	return strings.Join(parts, ", ")
}

func want(t *testing.T, c *Cluster, want, why string) {
	t.Helper()
	if got := c.String(); got != want {
		t.Fatalf("%s\nNow %s; want: %s. Sync changes nothing any more.", why, got, want)
	}
}

func Test1ASizeThatChangesDuringARollout(t *testing.T) {
	c := newCluster(Deployment{Version: "v1", Replicas: 5, MaxUnavailable: 1})
	c.Deployment.Version = "v2"
	Sync(c) // v2 gets no Pod yet, since there may be no more than five.
	want(t, c, "v1 has 4, v2 has 0", "The first step of the rollout.")
	c.Deployment.Replicas = 4
	settle(c)
	want(t, c, "v1 has 0, v2 has 4",
		"Five Pods were asked for, and v2. After the first step, only four were asked for.")
}

func Test2ARolloutGoesOnAfterEveryChange(t *testing.T) {
	for to := 1; to <= 8; to++ {
		for steps := range 8 {
			c := newCluster(Deployment{Version: "v1", Replicas: 5, MaxUnavailable: 1})
			c.Deployment.Version = "v2"
			for range steps {
				Sync(c)
				for _, s := range c.Sets {
					s.Available = s.Size
				}
			}
			c.Deployment.Replicas = to
			settle(c)
			want(t, c, fmt.Sprintf("v1 has 0, v2 has %d", to),
				fmt.Sprintf("After %d steps of the rollout of five Pods, %d were asked for.", steps, to))
		}
	}
}

func Test3AStuckRolloutKeepsItsShares(t *testing.T) {
	c := newCluster(Deployment{Version: "v1", Replicas: 10, MaxSurge: 3, MaxUnavailable: 2})
	c.Deployment.Version = "broken"
	settle(c)
	want(t, c, "v1 has 8, broken has 5", "The new version never becomes available.")
	c.Deployment.Replicas = 20
	settle(c)
	want(t, c, "v1 has 14, broken has 9", "Twice as many Pods were asked for. The broken version gets its share, and "+
		"no more than that: a change of the size must not move the rollout.")

	c = newCluster(Deployment{Version: "v1", Replicas: 5, MaxUnavailable: 1})
	c.Deployment.Version = "broken"
	Sync(c)
	c.Deployment.Replicas = 10
	settle(c)
	want(t, c, "v1 has 9, broken has 1", "The broken version had no Pod yet when twice as many were asked for. All of "+
		"the change is for v1, and then one Pod may be unavailable.")
}

func Test4OneVersionIsScaled(t *testing.T) {
	c := newCluster(Deployment{Version: "v1", Replicas: 5, MaxSurge: 1})
	for _, replicas := range []int{8, 3, 0, 4} {
		c.Deployment.Replicas = replicas
		settle(c)
		want(t, c, fmt.Sprintf("v1 has %d", replicas), fmt.Sprintf("%d Pods were asked for.", replicas))
	}
}

func Test5NothingIsWrittenInVain(t *testing.T) {
	c := newCluster(Deployment{Version: "v1", Replicas: 5, MaxUnavailable: 1})
	c.Deployment.Version = "v2"
	Sync(c)
	c.Deployment.Replicas = 4
	settle(c)
	c.Writes = 0
	for range 10 {
		Sync(c)
	}
	if c.Writes != 0 {
		t.Fatalf("All is as it was asked for (%s), and ten calls of Sync have written %d times.\n"+
			"Each write is an event, which causes the next Sync: this is a loop that never rests.", c, c.Writes)
	}
}
