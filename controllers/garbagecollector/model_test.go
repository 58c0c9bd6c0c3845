package garbagecollector_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// model is the expected state of a cluster if the collector did all its work after every step. Objects are identified
// by UID, group and kind; there are no versions.
type model struct {
	alive  map[string]*thing // by name; names are not used again
	served map[string][]string
}

// thing is an object.
type thing struct {
	kind   string
	ref    metav1.OwnerReference
	owners []string // names of the living owners
}

// die removes a thing, and then everything that has no owner left.
func (m *model) die(name string) {
	delete(m.alive, name)
	for other, t := range m.alive {
		if !slices.Contains(t.owners, name) {
			continue
		}
		t.owners = slices.DeleteFunc(t.owners, func(o string) bool { return o == name })
		if len(t.owners) == 0 {
			m.die(other)
		}
	}
}

// orphan removes a thing and leaves its dependents.
func (m *model) orphan(name string) {
	delete(m.alive, name)
	for _, t := range m.alive {
		t.owners = slices.DeleteFunc(t.owners, func(o string) bool { return o == name })
	}
}

// String lists the things as custom.rest does.
func (m *model) String() string {
	left := []string{}
	for name, t := range m.alive {
		left = append(left, strings.Join(append([]string{name}, t.owners...), "<"))
	}
	slices.Sort(left)
	return strings.Join(left, " ")
}

// play is one run: random steps, done to the cluster and to the model.
type play struct {
	*custom
	*model
	random *rand.Rand
	steps  []string
	made   int
}

func (p *play) note(format string, args ...any) {
	p.steps = append(p.steps, fmt.Sprintf(format, args...))
}

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

// names returns the names of living things, sorted, so that a seed always makes the same run.
func (p *play) names() []string {
	return slices.Sorted(maps.Keys(p.alive))
}

// step does one random step.
func (p *play) step() {
	names := p.names()
	switch roll := p.random.IntN(20); {
	case roll < 9 || len(names) == 0:
		p.create(names)
	case roll < 12:
		p.delete(pick(p.random, names))
	case roll < 14:
		name := pick(p.random, names)
		t := p.alive[name]
		if version := pick(p.random, p.served[t.kind]); t.kind != "ConfigMap" {
			p.note("correct %s to %s", name, version)
			p.correct(t.kind, pick(p.random, p.served[t.kind]), name, version)
		}
	case roll < 18:
		kind := pick(p.random, []string{"Gadget", "Part"})
		served := pick(p.random, [][]string{versions[:1], versions[1:], versions})
		p.note("serve %s in %v", kind, served)
		p.serve(kind, served...)
		p.served[kind] = served
	case roll < 19:
		p.redefine(pick(p.random, []string{"Gadget", "Part"}))
	default:
		p.note("wait")
		time.Sleep(time.Duration(p.random.IntN(40)) * time.Second)
	}
}

// create makes a thing with up to three owners, whose references name any version, even one that was never served.
func (p *play) create(names []string) {
	kind := pick(p.random, []string{"Gadget", "Part", "ConfigMap"})
	t := &thing{kind: kind}
	var refs []metav1.OwnerReference
	for range min(p.random.IntN(4), len(names)) {
		name := pick(p.random, names)
		if slices.Contains(t.owners, name) {
			continue
		}
		ref := p.alive[name].ref
		if ref.Kind != "ConfigMap" {
			ref.APIVersion = "example.com/" + pick(p.random, append(versions, "v0"))
		}
		blocks := p.random.IntN(2) == 0
		ref.BlockOwnerDeletion = &blocks
		t.owners, refs = append(t.owners, name), append(refs, ref)
	}
	p.made++
	name := fmt.Sprintf("%c%02d", strings.ToLower(kind)[0], p.made)
	p.note("create %s of %v", name, refs)
	t.ref = p.make(kind, pick(p.random, p.served[kind]), name, refs...)
	p.alive[name] = t
}

// delete deletes a thing. Orphaning takes two steps, and its result depends on what happens between them. So delete
// waits before and after it until the collector has nothing to do.
func (p *play) delete(name string) {
	policy := pick(p.random, []metav1.DeletionPropagation{
		metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan,
	})
	t := p.alive[name]
	version := pick(p.random, p.served[t.kind])
	p.note("delete %s in %s: %s", name, version, policy)
	if policy != metav1.DeletePropagationOrphan {
		p.remove(t.kind, version, name, policy)
		p.die(name)
		return
	}
	p.discovered()
	p.remove(t.kind, version, name, policy)
	p.orphan(name)
	p.discovered()
}

// redefine deletes the definition of a kind, and with it all objects of the kind, and defines it again.
func (p *play) redefine(kind string) {
	p.note("redefine %s", kind)
	p.discovered() // TestDefinitionGoesUnseen covers a collector that has not caught up.
	p.undefine(kind)
	for _, name := range p.names() {
		if t := p.alive[name]; t != nil && t.kind == kind {
			p.die(name)
		}
	}
	p.discovered()
	p.served[kind] = pick(p.random, [][]string{versions[:1], versions})
	p.serve(kind, p.served[kind]...)
}

// However the versions change, the remaining objects are those that follow from identity by UID, group and kind.
func TestModelOfVersions(t *testing.T) {
	runs := uint64(30)
	if testing.Short() {
		runs = 10
	}
	for seed := range runs {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			inCluster(t, func(c *cluster) {
				m := &model{alive: map[string]*thing{}, served: map[string][]string{"ConfigMap": {"v1"}}}
				p := &play{custom: newCustom(c), model: m, random: rand.New(rand.NewPCG(seed, 0))}
				for _, kind := range []string{"Gadget", "Part"} {
					p.served[kind] = versions[:1]
					p.serve(kind, versions[0])
				}
				for range 30 {
					p.step()
				}
				p.discovered()
				p.discovered()
				got := strings.Join(p.rest(map[string]string{
					"ConfigMap": "v1", "Gadget": p.served["Gadget"][0], "Part": p.served["Part"][0],
				}), " ")
				if want := m.String(); got != want {
					t.Errorf("left %s\nwant %s\nafter %s", got, want, strings.Join(p.steps, "\n"))
				}
				if health, note := c.gc.Health(), c.gc.Note(); health != nil || note != "" {
					t.Errorf("health %v, note %q", health, note)
				}
			})
		})
	}
}
