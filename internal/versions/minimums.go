package versions

// maxMinimums bounds the namespaces with a minimum version of their own.
const maxMinimums = 1000

// Minimums are the highest versions of own writes that have no entry. A cache has to reach that of a namespace before
// it can be read. They are kept by namespace, so that a cache of a quiet namespace does not wait for writes to another.
type Minimums struct {
	// of has them by namespace; "" is for cluster-scoped objects.
	of map[string]string
	// everywhere is the minimum of all namespaces.
	everywhere string
}

// None reports whether there are no minimums.
func (m *Minimums) None() bool { return len(m.of) == 0 && m.everywhere == "" }

// Raise notes that version was written to a namespace.
func (m *Minimums) Raise(namespace, version string) {
	if _, known := m.of[namespace]; !known && len(m.of) >= maxMinimums {
		for _, v := range m.of {
			m.everywhere = Later(m.everywhere, v)
		}
		m.of, m.everywhere = nil, Later(m.everywhere, version)
		return
	}
	if v := Later(m.of[namespace], version); v != "" {
		if m.of == nil {
			m.of = map[string]string{}
		}
		m.of[namespace] = v
	}
}

// Below returns the version that a cache of the followed namespaces (nil means all) has to reach before it can be read
// in a namespace ("" means all that it follows). It is "" if there is none.
func (m *Minimums) Below(namespace string, followed []string) string {
	highest := m.of[namespace]
	switch {
	case namespace != "":
	case followed != nil:
		for _, n := range followed {
			highest = higher(highest, m.of[n])
		}
	default:
		for _, v := range m.of {
			highest = higher(highest, v)
		}
	}
	return higher(m.everywhere, highest)
}

// higher returns the later of two versions. Either may be "".
func higher(a, b string) string {
	if b == "" {
		return a
	}
	return Later(a, b)
}
