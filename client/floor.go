package client

// maxFloors bounds for how many namespaces floors are kept apart.
const maxFloors = 1000

// floors are the highest versions of own writes that have no entry in the books: a cache has to reach that of a namespace before it can
// tell what is in it. They are kept by namespace, so that a cache of one where nothing happens does not wait for
// what was written to another.
type floors struct {
	// of has them by namespace, "" being that of what has none.
	of map[string]string
	// everywhere is one that holds for all namespaces.
	everywhere string
}

// none says that there is none.
func (f *floors) none() bool { return len(f.of) == 0 && f.everywhere == "" }

// raise notes that version was written to a namespace.
func (f *floors) raise(namespace, version string) {
	if _, known := f.of[namespace]; !known && len(f.of) >= maxFloors {
		for _, v := range f.of {
			f.everywhere = later(f.everywhere, v)
		}
		f.of, f.everywhere = nil, later(f.everywhere, version)
		return
	}
	if v := later(f.of[namespace], version); v != "" {
		if f.of == nil {
			f.of = map[string]string{}
		}
		f.of[namespace] = v
	}
}

// below is what a cache of the followed namespaces (nil is all) has to have reached before it tells what is in a namespace, "" being all
// that it follows. It is "" if there is nothing to reach.
func (f *floors) below(namespace string, followed []string) string {
	if namespace != "" {
		return f.and(f.of[namespace])
	}
	highest := f.of[""]
	if followed != nil {
		for _, n := range followed {
			highest = f.higher(highest, f.of[n])
		}
		return f.and(highest)
	}
	for _, v := range f.of {
		highest = f.higher(highest, v)
	}
	return f.and(highest)
}

func (f *floors) and(v string) string { return f.higher(f.everywhere, v) }

// higher is the later of two, of which either may be "".
func (f *floors) higher(a, b string) string {
	if b == "" {
		return a
	}
	return later(a, b)
}
