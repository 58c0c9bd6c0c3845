package localapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// names gives what must differ between two servers a name that does not. A script has one for each server.
type names struct {
	text  string    // of the script: what stands there was chosen by the client, and stays
	start time.Time // of the script

	versions map[int64]string  // resource versions of objects
	values   map[string]string // UIDs, addresses, ports
	count    map[string]int    // values by kind
	object   string            // UID of the object whose fields are being named
	ends     []*regexp.Regexp  // names that the server completed
}

func newNames(text string) *names {
	return &names{
		text: text, start: time.Now(), ends: ends(text), versions: map[int64]string{},
		values: map[string]string{}, count: map[string]int{},
	}
}

// answer names everything in the answer to the step at a line.
func (n *names) answer(a answer, line int) answer {
	n.learnVersions(a.body, line)
	headers := map[string]any{}
	for k, v := range a.headers {
		if text, ok := v.(string); ok {
			v = n.string(text)
		}
		headers[k] = v
	}
	return answer{code: a.code, headers: headers, body: n.value("", a.body)}
}

// learnVersions names the versions of objects that were not seen before for the line.
func (n *names) learnVersions(v any, line int) {
	var found []int64
	walkObjects(v, func(object map[string]any) {
		if isList(object) {
			return
		}
		m, _ := object["metadata"].(map[string]any)
		text, _ := m["resourceVersion"].(string)
		if version, err := strconv.ParseInt(text, 10, 64); err == nil && n.versions[version] == "" {
			found = append(found, version)
		}
	})
	slices.Sort(found)
	for i, version := range slices.Compact(found) {
		n.versions[version] = fmt.Sprintf("version@%d", line)
		if i > 0 {
			n.versions[version] += fmt.Sprintf(".%d", i)
		}
	}
}

// order is the names of all versions, oldest first.
func (n *names) order() []string {
	versions := make([]int64, 0, len(n.versions))
	for v := range n.versions {
		versions = append(versions, v)
	}
	slices.Sort(versions)
	order := make([]string, 0, len(versions))
	for _, v := range versions {
		order = append(order, n.versions[v])
	}
	return order
}

// ends finds the names in a script that the servers are to complete.
func ends(text string) []*regexp.Regexp {
	var found []*regexp.Regexp
	for _, m := range generateName.FindAllStringSubmatch(text, -1) {
		prefix := m[1][:min(len(m[1]), 58)]
		found = append(found, regexp.MustCompile("("+regexp.QuoteMeta(prefix)+`)[bcdfghjklmnpqrstvwxz2456789]{5}\b`))
	}
	return found
}

// walkObjects calls f with everything in v that has metadata.
func walkObjects(v any, f func(map[string]any)) {
	switch v := v.(type) {
	case map[string]any:
		if _, ok := v["metadata"].(map[string]any); ok {
			f(v)
		}
		for _, child := range v {
			walkObjects(child, f)
		}
	case []any:
		for _, child := range v {
			walkObjects(child, f)
		}
	}
}

// isList reports whether an object's resource version is that of a collection.
func isList(object map[string]any) bool {
	kind, _ := object["kind"].(string)
	_, items := object["items"]
	m, _ := object["metadata"].(map[string]any)
	notes, _ := m["annotations"].(map[string]any)
	_, bookmark := notes[metav1.InitialEventsAnnotationKey]
	return items || bookmark || strings.HasSuffix(kind, "List") || kind == "Table" || kind == "Status"
}

// value replaces the values in v, which stands under a key, by names.
func (n *names) value(key string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		return n.fields(v)
	case []any:
		list := make([]any, len(v))
		for i, child := range v {
			list[i] = n.value(key, child)
		}
		// in no order
		if key == "managedFields" || key == "causes" && strings.Contains(encode(v), "FieldManagerConflict") {
			slices.SortFunc(list, func(a, b any) int { return strings.Compare(encode(a), encode(b)) })
		}
		return list
	case string:
		return n.string(v)
	case float64:
		if port := strconv.FormatFloat(v, 'f', -1, 64); (key == "nodePort" || key == "healthCheckNodePort") &&
			v != 0 && !strings.Contains(n.text, port) {
			return n.held("port", port)
		}
	}
	return v
}

func encode(v any) string {
	data, _ := json.Marshal(v) // it came from JSON
	return string(data)
}

func (n *names) fields(o map[string]any) map[string]any {
	result := make(map[string]any, len(o))
	outer := n.object
	if m, ok := o["metadata"].(map[string]any); ok {
		n.object, _ = m["uid"].(string)
	}
	for _, k := range slices.Sorted(maps.Keys(o)) { // names are given in order
		result[n.string(k)] = n.value(k, o[k])
	}
	n.object = outer
	if o["deletionTimestamp"] != nil {
		result["deletionTimestamp"] = n.deletion(o)
	}
	if o["kind"] == "Table" {
		n.ages(result)
	}
	if version, ok := o["resourceVersion"].(string); ok { // of metadata, or a reference to an object
		if v, err := strconv.ParseInt(version, 10, 64); err == nil && n.versions[v] != "" {
			result["resourceVersion"] = n.versions[v]
		}
	}
	m, ok := o["metadata"].(map[string]any)
	if !ok || !isList(o) {
		return result
	}
	named := result["metadata"].(map[string]any)
	if version, ok := m["resourceVersion"].(string); ok {
		named["resourceVersion"] = n.floor(version)
	}
	if c, _ := m["continue"].(string); c != "" {
		named["continue"] = "some token"
	}
	return result
}

// floor names the last version of an object that is known and not after the version of a list.
func (n *names) floor(version string) string {
	v, err := strconv.ParseInt(version, 10, 64)
	if err != nil {
		return version
	}
	best := int64(-1)
	for known := range n.versions {
		if known <= v {
			best = max(best, known)
		}
	}
	if best < 0 {
		return "before all versions"
	}
	return "not before " + n.versions[best]
}

// ages names the cells of a table that change with time. A watch sends the columns once, so the cells alone must tell.
func (n *names) ages(table map[string]any) {
	rows, _ := table["rows"].([]any)
	for _, r := range rows {
		row, _ := r.(map[string]any)
		cells, _ := row["cells"].([]any)
		for i, c := range cells {
			if text, ok := c.(string); ok && age.MatchString(text) {
				cells[i] = "some time"
			}
		}
	}
}

var (
	age          = regexp.MustCompile(`^([0-9]+[smhdy])+$`)
	uuid         = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	address      = regexp.MustCompile(`\b10\.(?:0|96)\.[0-9]+\.[0-9]+\b|\bfd00:10::[0-9a-f:]+`)
	generateName = regexp.MustCompile(`generateName: *"?([^\s",}]+)`)
	moment       = regexp.MustCompile(`[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?Z`)
	inMessage    = regexp.MustCompile(
		`([rR]esourceVersion[^:]*: |[rR]esource version[^:]*: |current: |revision=|ResourceVersion in (?:the precondition|record) \(|resourceVersion\\?":\\?")([0-9]+)`,
	)
)

// string replaces the values in a text by names.
func (n *names) string(text string) string {
	text = moment.ReplaceAllStringFunc(text, func(moment string) string {
		t, err := time.Parse(time.RFC3339, moment)
		if err != nil || strings.Contains(n.text, moment) {
			return moment
		}
		return n.moment(t)
	})
	text = uuid.ReplaceAllStringFunc(text, func(id string) string { return n.own("uid", id) })
	text = address.ReplaceAllStringFunc(text, func(ip string) string { return n.own("address", ip) })
	for _, e := range n.ends {
		text = e.ReplaceAllStringFunc(text, func(name string) string {
			return e.FindStringSubmatch(name)[1] + n.named("end", name)
		})
	}
	return inMessage.ReplaceAllStringFunc(text, func(match string) string {
		parts := inMessage.FindStringSubmatch(match)
		v, err := strconv.ParseInt(parts[2], 10, 64)
		switch {
		case err == nil && n.versions[v] != "":
			return parts[1] + n.versions[v]
		case strings.Contains(n.text, parts[2]):
			return match
		}
		return parts[1] + "a version not seen"
	})
}

// moment names a time by how far it is ahead: how long ago something was depends on how fast the machine is.
func (n *names) moment(t time.Time) string {
	const step, slack = 30 * time.Second, 5 * time.Second
	switch ahead := time.Until(t); {
	case t.Before(n.start.Add(-slack)):
		return "before the script"
	case ahead < slack:
		return "now"
	default:
		return fmt.Sprintf("in %d s", int((ahead+step/2)/step*step/time.Second))
	}
}

// deletion names the time at which a grace period ends by the time at which it began.
func (n *names) deletion(o map[string]any) any {
	text, _ := o["deletionTimestamp"].(string)
	grace, _ := o["deletionGracePeriodSeconds"].(float64)
	t, err := time.Parse(time.RFC3339, text)
	if err != nil || strings.Contains(n.text, text) {
		return o["deletionTimestamp"]
	}
	return fmt.Sprintf("%v s after %s", grace, n.moment(t.Add(-time.Duration(grace)*time.Second)))
}

// own names a value unless the client chose it.
func (n *names) own(what, value string) string {
	if strings.Contains(n.text, value) {
		return value
	}
	if what == "address" {
		return n.held(what, value)
	}
	return n.named(what, value)
}

// held names an address or port by its holder: whether one that was given back is the next to be given out is the
// server's affair.
func (n *names) held(what, value string) string {
	if n.object == "" {
		if name := n.values[what+" "+value]; name != "" {
			return name // the last holder's
		}
	}
	name := n.named(what, value+" "+n.object)
	n.values[what+" "+value] = name
	return name
}

func (n *names) named(what, value string) string {
	key := what + " " + value
	if n.values[key] == "" {
		n.count[what]++
		n.values[key] = fmt.Sprintf("<%s %d>", what, n.count[what])
	}
	return n.values[key]
}
