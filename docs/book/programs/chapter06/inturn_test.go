package chapter06

// An inTurn is the first idea: whoever changes the cache calls the handlers, one after the other.
type inTurn struct {
	cache    *mirror
	handlers []func(change)
}

func (f *inTurn) Apply(c change) {
	f.cache.set(c)
	for _, handle := range f.handlers {
		handle(c)
	}
}
