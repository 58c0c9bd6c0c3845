package chapter04

// expand turns a list into changes of single objects, while it is put into the queue. For what is missing from the list
// it asks the cache.
func expand(q queue, cache map[string]change, list []change) {
	listed := map[string]bool{}
	for _, c := range list {
		listed[c.key] = true
		q.Push(c)
	}
	for key, c := range cache {
		if !listed[key] {
			q.Push(change{key: key, uid: c.uid, version: c.version, gone: true})
		}
	}
}
