package simtest

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"time"
	"weak"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Rule is what a finding violates.
type Rule string

// The rules.
const (
	// RuleEnd: the objects at the end, and whenever the user sees the program settle, are those of the run without
	// faults. Resource versions, UIDs, times and generated names may differ.
	RuleEnd Rule = "same end"
	// RuleMatches: [Scenario.Matches] holds at the end.
	RuleMatches Rule = "matches"
	// RuleAlways: [Scenario.Always] holds after every write.
	RuleAlways Rule = "always"
	// RuleRest: the program settles, and then changes nothing: not when it lists again and, in the run without faults,
	// not after a cold restart.
	RuleRest Rule = "rest"
	// RuleDeletes: the program deletes nothing that stays without faults. To stay is to be there when the user next
	// sees the program settle.
	RuleDeletes Rule = "no needless delete"
	// RuleCreates: the program creates no objects of other names than without faults, and no more of those whose names
	// are generated, except for what others deleted while its owner was there. The UID of an object in a name stands
	// for that object.
	RuleCreates Rule = "no needless create"
	// RuleIdentity: the program deletes or patches no object that has taken the name of another, if the program has
	// been shown the other one only.
	RuleIdentity Rule = "known identity"
	// RuleLeader: the program sends no write after another process has got its lease.
	RuleLeader Rule = "only the leader writes"
	// RuleStop: the program returns when its context ends, and leaves no goroutine behind.
	RuleStop Rule = "stops"
	// RuleMemory: nothing refers to a process of the program after the run.
	RuleMemory Rule = "leaves no memory"
	// RuleExit: the program does not panic or end by itself. With faults, it may end with an error a few times.
	RuleExit Rule = "keeps running"
	// RuleRoles: the program asks for nothing that [Scenario.Roles] does not allow.
	RuleRoles Rule = "within its roles"
	// RuleCache: the caches that [Cache] tells of are equal to the API server when the program has settled.
	RuleCache Rule = "caches agree"
	// RuleWrites: the program writes something in the run without faults. If not, nothing is proved.
	RuleWrites Rule = "writes something"
	// RuleScript: the user's steps succeed.
	RuleScript Rule = "script"
)

// Finding is a violation of a rule.
type Finding struct {
	Rule    Rule
	Subject string // what it is about; findings of one rule about one subject count as one
	Text    string
	Diff    []string // of [RuleEnd]: what differs

	when  string // of [RuleEnd]
	told  int    // lines of the run's story that belong to it; 0 is all
	plan  *runPlan
	story []*moment
}

// fail records a finding, unless the scenario allows it.
func (w *world) fail(r Rule, subject, text string) {
	if slices.Contains(w.scenario.Allow, r) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.findings = append(w.findings, Finding{Rule: r, Subject: subject, Text: text})
}

// giveUp is fail for a run that cannot go on, whether or not the scenario allows the finding.
func (w *world) giveUp(r Rule, subject, text string) {
	w.fail(r, subject, text)
	w.hopeless = true
	if len(w.plan.Faults) == 0 && slices.Contains(w.scenario.Allow, r) {
		w.record.broken = errors.New("there is no end to compare with: " + text)
	}
}

// failed reports whether the run has a finding or cannot go on. It then ends.
func (w *world) failed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.hopeless || len(w.findings) > 0
}

// judgeRequest looks at a request that is about to happen.
func (w *world) judgeRequest(o *op) {
	if o.process == nil || o.process.other || o.event != nil {
		return
	}
	if w.scenario.Roles != nil && o.cluster == "" && o.request.Resource != "" && !allowed(w.scenario.Roles, o) {
		w.fail(RuleRoles, o.request.Verb+" "+o.resource().String(),
			"no role allows what the program asks for: "+o.signature())
	}
	w.judgePace(o)
	if !o.writes() {
		return
	}
	if limit := w.limits.writes; limit > 0 && w.counts[atWrite] > limit {
		w.giveUp(RuleRest, "writes", fmt.Sprintf("the program has sent %d writes; the last one is %s",
			w.counts[atWrite], o.signature()))
	}
	if o.process.deposed && o.fault == nil {
		w.fail(RuleLeader, "leader", fmt.Sprintf("%s writes after another process has got its lease: %s",
			o.process.name(), o.signature()))
	}
	w.judgeIdentity(o)
}

// judgePace reports a program that goes on asking although nothing changes. Such a loop may never write: reads count,
// updates that change nothing, and events.
func (w *world) judgePace(o *op) {
	if now := time.Now(); w.asked == nil || now.Sub(w.askedSince) > hotWithin {
		w.asked, w.askedSince = map[string]int{}, now
	}
	what := o.process.name() + " " + o.signature()
	if w.asked[what]++; w.asked[what] == hotRequests {
		w.giveUp(RuleRest, "hot loop", fmt.Sprintf("the program asks %d times within %v although nothing changes: %s",
			hotRequests, time.Since(w.askedSince).Round(time.Second), o.signature()))
	}
}

// judgeIdentity reports a delete or patch of an object that the process has not been shown.
func (w *world) judgeIdentity(o *op) {
	r := o.request
	if r.Verb != "delete" && r.Verb != "patch" || strings.Contains(r.Header.Get("Content-Type"), "apply-patch") {
		return
	}
	i := id{o.resource(), r.Namespace, r.Name}
	now := len(w.lives[i]) - 1
	if now < 1 || w.lives[i][now].died != 0 || o.fault != nil || o.process.knows(i, w.lives[i][now]) {
		return
	}
	if slices.ContainsFunc(w.lives[i][:now], func(l life) bool { return o.process.knows(i, l) }) {
		o.stranger = fmt.Sprintf("%s asks to %s, but has only been shown an older object of that name, which is gone",
			o.process.name(), o.signature())
	}
}

// judgeExit looks at a process that has ended.
func (w *world) judgeExit(p *process) {
	planned := p.ctx.Err() != nil && (p.restart || w.phase == stopping)
	switch {
	case p.err != nil && strings.HasPrefix(p.err.Error(), "panic: "):
		w.giveUp(RuleExit, "panic", p.name()+": "+p.err.Error())
	case planned:
	case len(w.plan.Faults) == 0 || w.exits >= maxRestarts || p.err == nil:
		w.giveUp(RuleExit, "exit", fmt.Sprintf("%s has ended by itself: %v", p.name(), p.err))
	default:
		if !slices.ContainsFunc(w.holds, func(h *hold) bool { return h.requests }) { // else it has reason to end
			w.exits++
		}
		w.tell(p.name(), fmt.Sprintf("ends by itself: %v", p.err))
	}
}

// leaseChanged follows who holds the program's lease.
func (w *world) leaseChanged(c *committed) {
	if c.Resource.Resource != "leases" || w.current == nil || w.current.process == nil || w.current.process.other {
		return
	}
	by := w.current.process
	holder := holderOf(c)
	if holder == "" || by.leads {
		return
	}
	for _, p := range w.processes {
		if p.leads && p != by {
			p.leads, p.deposed = false, true
		}
	}
	by.leads, by.deposed = true, false
	w.tell(by.name(), "has the lease")
}

// holderOf returns the identity that holds a lease.
func holderOf(c *committed) string {
	if c.Object == nil {
		return ""
	}
	spec, _ := fields(c.Object)["spec"].(map[string]any)
	holder, _ := spec["holderIdentity"].(string)
	return holder
}

// allowed reports whether one of the rules allows the request, or the program can do without: informers read the
// namespace kube-system to tell clusters apart, and accept a refusal.
func allowed(rules []rbacv1.PolicyRule, o *op) bool {
	r := o.request
	if r.Verb == "get" && r.Resource == "namespaces" && r.Name == metav1.NamespaceSystem {
		return true
	}
	resource := r.Resource
	if r.Subresource != "" {
		resource += "/" + r.Subresource
	}
	has := func(list []string, s string) bool { return slices.Contains(list, s) || slices.Contains(list, "*") }
	for i := range rules {
		rule := &rules[i]
		if has(rule.Verbs, r.Verb) && has(rule.APIGroups, r.Group) && has(rule.Resources, resource) &&
			(len(rule.ResourceNames) == 0 || r.Name != "" && slices.Contains(rule.ResourceNames, r.Name)) {
			return true
		}
	}
	return false
}

// compare judges a run by the run without faults.
func (r *run) compare(base *run, masked map[string]bool, s *Scenario) {
	if len(r.findings) > 0 || r.broken != nil {
		return
	}
	if !slices.Contains(s.Allow, RuleEnd) {
		if r.judgeEnds(base, func(line string) bool { return masked[fieldOf(line)] || s.ignores(fieldOf(line)) }) {
			return
		}
	}
	if r.end == nil || r.pruned {
		return
	}
	add := func(rule Rule, subject, text string) {
		if !slices.Contains(s.Allow, rule) {
			r.findings = append(r.findings, Finding{Rule: rule, Subject: subject, Text: text, told: r.end.told})
		}
	}
	r.judgeDeletes(base, add)
	r.judgeCreates(base, add)
}

// judgeEnds compares the end, and each state before it in which the user has seen the program settle. It reports
// whether one differs.
func (r *run) judgeEnds(base *run, ignored func(line string) bool) bool {
	for _, pair := range r.pairs(base) {
		diff := slices.DeleteFunc(pair[0].diff(pair[1]), ignored)
		if len(diff) == 0 {
			continue
		}
		f := Finding{Rule: RuleEnd, Subject: subjectOf(diff[0]), Diff: diff, told: pair[0].told}
		if f.when, f.Text = "at the end", "the end differs from that of the run without faults"; pair[0] != r.end {
			f.when = fmt.Sprintf("at Settle %d", pair[0].settles)
			f.Text = "when the program has settled, the objects differ from those of the run without faults"
		}
		r.findings = append(r.findings, f)
		return true
	}
	return false
}

// pairs returns the states of two runs that must not differ: those in which the user has seen the program settle, and
// the end. While a state is hidden, the user sees the program settle before it has done its work.
func (r *run) pairs(base *run) [][2]*end {
	var pairs [][2]*end
	for n, e := range r.settled {
		if !r.plan.hides() && n < len(base.settled) && (r.end == nil || e.revision != r.end.revision) {
			pairs = append(pairs, [2]*end{e, base.settled[n]})
		}
	}
	if r.end != nil && base.end != nil && !r.pruned {
		pairs = append(pairs, [2]*end{r.end, base.end})
	}
	return pairs
}

// idle returns the finding that the program writes nothing, or nil.
func (r *run) idle() *Finding {
	f := &Finding{Rule: RuleWrites, Subject: "writes"}
	switch {
	case len(r.ops[atWrite]) > 0:
		return nil
	case len(r.ops[atRead]) == 0:
		f.Text = "the program sends no request. It must use the config that Env.Config returns, and no other"
	default:
		f.Text = "the program writes nothing, so that nothing can go wrong. Does the script create what it works on, " +
			"in a namespace and with labels that it watches? Are the conditions met that it waits for, such as a " +
			"status that others write?"
	}
	return f
}

// held returns the finding that something refers to a process after the run, or nil.
func (r *run) held() *Finding {
	// What a finalizer or a pool refers to is free after some more cycles.
	for range 4 {
		runtime.GC()
		if !slices.ContainsFunc(r.transports, func(t weak.Pointer[transport]) bool { return t.Value() != nil }) {
			return nil
		}
	}
	return &Finding{
		Rule: RuleMemory, Subject: "memory", Text: "something still refers to a client that has the config of a " +
			"process, although all processes have ended. Is a client, a cache or a manager in a package-level " +
			"variable? The next process must not get what the one before has left",
	}
}

// ignores reports whether a field at the end is one of [Scenario.Ignore], or is in one.
func (s *Scenario) ignores(field string) bool {
	return slices.ContainsFunc(s.Ignore, func(whole string) bool {
		rest, ok := strings.CutPrefix(field, whole)
		return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}

// subjectOf returns the object that a line of a diff is about.
func subjectOf(line string) string {
	object, _, _ := strings.Cut(line, ": ")
	return object
}

// judgeDeletes looks for deletes of what stays without faults: the object is there when the user next sees the program
// settle, and the program has not deleted it since the user did so before. A process that deletes what it has just
// created itself has mended a mistake, made when its cache was behind.
func (r *run) judgeDeletes(base *run, add func(rule Rule, subject, text string)) {
	type moment struct {
		id
		settles int
	}
	at := func(c change) moment {
		if r.plan.hides() { // The user may see the program settle before it has done its work.
			return moment{c.id, math.MaxInt}
		}
		return moment{c.id, c.settles}
	}
	usual := map[moment]bool{}
	for _, c := range base.changes {
		if c.deleted && c.by == byProgram {
			usual[at(c)] = true
		}
	}
	made := map[id]change{}
	for _, c := range r.changes {
		if c.created {
			made[c.id] = c
		}
		ownMistake := made[c.id].by == byProgram && made[c.id].process == c.process && made[c.id].settles == c.settles
		if c.deleted && c.by == byProgram && c.generated == "" && !ownMistake && !usual[at(c)] &&
			base.had(c.id, at(c).settles) {
			add(RuleDeletes, c.String(), "the program deletes what stays without faults: "+c.String())
		}
	}
}

// had reports whether an object was there when the user had seen the program settle once more than so many times.
func (r *run) had(i id, settles int) bool {
	there := r.end.has(i)
	for n := len(r.changes) - 1; n >= 0; n-- {
		switch c := &r.changes[n]; {
		case c.id != i:
		case c.settles <= settles:
			return !c.deleted
		default:
			there = !c.created
		}
	}
	return there
}

// kin are objects that count together: see family.
type kin struct {
	resource        resource
	namespace, name string
}

// family returns what stands for the names of all objects that count together with this one, "" if it counts alone.
// Those are names that the server generates, and names with a UID that is not that of an object.
func (c *change) family() string {
	if c.generated != "" {
		return c.generated + "*"
	}
	name := cmp.Or(c.alias, c.name)
	if family := uidPattern.ReplaceAllString(name, "*"); family != name {
		return family
	}
	return ""
}

// kin returns the objects that count together with this one; its name is "" if it counts alone.
func (c *change) kin() kin { return kin{c.resource, c.namespace, c.family()} }

// fixed returns the identity of an object that counts alone: it has the same name in all runs.
func (c *change) fixed() id {
	i := c.id
	i.name = cmp.Or(c.alias, c.name)
	return i
}

// balance counts the creates of the program less the deletes of others, by family.
func (r *run) balance() (map[kin]int, []kin) {
	sums, order := map[kin]int{}, []kin{}
	for _, c := range r.changes {
		k := c.kin()
		if k.name == "" {
			continue
		}
		if _, ok := sums[k]; !ok {
			order = append(order, k)
		}
		switch {
		case c.created && c.by == byProgram:
			sums[k]++
		case c.deleted && c.by != byProgram:
			sums[k]--
		}
	}
	return sums, order
}

// litter is the objects of a family that have one owner.
type litter struct {
	kin
	owner string
}

// litters returns the size of each litter, by the owner's identity; of owners that have the same, that of the larger
// one. What others delete while its owner is there does not count: it may be replaced. What the garbage collector
// deletes, without its owner, does.
func (r *run) litters() map[litter]int {
	sizes, owners := map[litter]int{}, map[string]id{}
	for _, c := range r.changes {
		k := litter{c.kin(), c.owner.uid}
		switch {
		case k.name == "" || k.owner == "":
			continue
		case c.created && c.by == byProgram:
			sizes[k]++
		case c.deleted && c.by != byProgram:
			sizes[k]--
		}
		owners[k.owner] = c.owner.id
	}
	largest := map[litter]int{}
	for k, n := range sizes {
		k.owner = owners[k.owner].String()
		largest[k] = max(largest[k], n)
	}
	return largest
}

// judgeCreates looks for objects that were created in excess. An object of a name that the run without faults has had
// at some time is none: a program that is late may make it once more, and then has to remove it. Nor is the first one
// of an owner that has none without faults, because it is gone before the program sees it.
func (r *run) judgeCreates(base *run, add func(rule Rule, subject, text string)) {
	known := map[id]bool{}
	for _, c := range base.changes {
		known[c.fixed()] = true
	}
	for _, c := range r.changes {
		if c.created && c.by == byProgram && c.family() == "" && !known[c.fixed()] && !base.end.has(c.id) {
			add(RuleCreates, c.String(), "the program creates what it does not create without faults: "+c.String())
			return
		}
	}
	usual, _ := base.balance()
	sums, order := r.balance()
	for _, k := range order {
		if sums[k] > max(usual[k], 0) && sums[k] > 0 {
			name := id(k).String()
			add(RuleCreates, name, fmt.Sprintf("the program creates %s %d times more often than without faults", name,
				sums[k]-usual[k]))
			return
		}
	}
	few, many := base.litters(), r.litters()
	for _, c := range r.changes {
		k := litter{c.kin(), c.owner.id.String()}
		if few[k] > 0 && many[k] > few[k] {
			name := id(k.kin).String()
			add(RuleCreates, name, fmt.Sprintf("the program creates %s for %s %d times, without faults %d times", name,
				k.owner, many[k], few[k]))
			return
		}
	}
}

func generationOf(s stored) int64 {
	m, err := meta.Accessor(s.object)
	if err != nil {
		return 0
	}
	return m.GetGeneration()
}
